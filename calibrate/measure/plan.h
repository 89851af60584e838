// SPDX-License-Identifier: Apache-2.0
// What a calibration measures: every distinct operation of a model's stages,
// whole passes of them, and what the device's figures are fitted to.
#ifndef WEIR_CALIBRATE_MEASURE_PLAN_H_
#define WEIR_CALIBRATE_MEASURE_PLAN_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "calibrate/device_profile.pb.h"
#include "calibrate/measure/bench.h"
#include "models/model.pb.h"

namespace weir {

struct PlanOptions {
  std::vector<int> microbatch_sizes = {1, 2, 4};
  std::vector<int> sequence_lengths;  // empty: the model's own
  std::vector<int> tensor_parallel = {1};
  bool fused_attention = true, unfused_attention = false;
  double dropout = 0;
  // Padded as Megatron-LM pads; kernels need rows of whole 16 bytes.
  int vocabulary_multiple = 128;
  ElementFormat format = ElementFormat::kBf16;
  int num_partitions = 1;  // of the card, of which one is measured
};

// Some layers of the model with some sizes.
struct PlannedStage {
  std::string key;  // "gpt2 2 blocks + head mb 4 s 1024 tp 1 fused bf16"
  StageSpec spec;
  std::shared_ptr<const StageProgram> program;
  int num_blocks = 0;
  bool has_embedding = false, has_head = false;
};

// A whole pass, and the keys of its operations in order: their medians add up
// to it, but for what lies between kernels.
struct PlannedPass {
  std::string key;
  int stage = 0;  // of MeasuringPlan::stages
  StagePass pass = StagePass::kForward;
  std::vector<std::string> op_keys;
};

// A pass on a part of a card while other parts work.
struct PlannedLoad {
  std::string key;
  int pass = 0;    // of MeasuringPlan::passes: the same alone
  int active = 2;  // parts that work, this one among them
};

// A product alone and beside something else.
struct PlannedOverlap {
  std::string alone_key, beside_key;
  bool collectives = false;  // else copies
};

struct PlannedMemory {
  std::string key;
  int stage = 0;
  int num_microbatches = 1;
};

struct MeasuringPlan {
  std::string model;
  ElementFormat format = ElementFormat::kBf16;
  Workload reference;  // a product that shows whether the device has drifted
  std::vector<Workload> workloads;  // each key once, in the order to measure
  std::vector<PlannedStage> stages;
  std::vector<PlannedPass> passes;
  int num_partitions = 1;
  std::vector<PlannedLoad> loads;  // none with one partition
  std::vector<PlannedOverlap> overlaps;
  std::vector<PlannedMemory> memory;
};

// On a part of a card every pass is measured alone and while 2, 4, 8 ... and
// all parts work; nothing of NCCL is, which does not join the parts of a card,
// nor products beside copies at full speed, which replays on parts do not make.
// InvalidArgument names what of the model, or which option, cannot be measured.
absl::StatusOr<MeasuringPlan> MakePlan(const Model& model,
                                       const PlanOptions& options);

// All that decides how long an operation takes, and nothing else: "product m
// 2048 n 6144 k 2048 ... bf16". The same in every run and every stage.
std::string OpKey(const StageProgram& program, const StageOp& op);

// One product, d[m, n] = a[m, k] b[k, n].
std::shared_ptr<const StageProgram> ProductProgram(double m, double n, double k,
                                                   ElementFormat format);

// The operation of a kOp workload. REQUIRES: it has a program.
const StageOp& OpOf(const Workload& workload);

// The most that a stage takes with so many forwards before the first backward.
double PredictedPeakBytes(const StageProgram& program, int num_microbatches);

// A guess at the device seconds of one launch, from a profile's figures.
double EstimateSeconds(const DeviceProfile& profile, const Workload& workload);
// And of measuring it, verification and buffers included, on one of so many
// parts of the card that the profile is of.
double EstimateMeasuringSeconds(const DeviceProfile& profile,
                                const Workload& workload,
                                int num_partitions = 1);

}  // namespace weir

#endif  // WEIR_CALIBRATE_MEASURE_PLAN_H_
