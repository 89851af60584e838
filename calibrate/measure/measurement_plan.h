// SPDX-License-Identifier: Apache-2.0
// Plan of a calibration: every distinct operation of a model's stages, whole
// passes, and the workloads that the model parameters are fitted to.
#ifndef WEIR_CALIBRATE_MEASURE_MEASUREMENT_PLAN_H_
#define WEIR_CALIBRATE_MEASURE_MEASUREMENT_PLAN_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "calibrate/measure/bench.h"
#include "calibrate/profile/device_profile.pb.h"
#include "models/model.pb.h"

namespace weir::calibrate {

struct PlanOptions {
  std::vector<int> microbatch_sizes = {1, 2, 4};
  std::vector<int> sequence_lengths;  // empty: the model's own
  std::vector<int> tensor_parallel = {1};
  bool fused_attention = true, unfused_attention = false;
  double dropout = 0;
  // Padded as in Megatron-LM; kernels need rows of a multiple of 16 bytes.
  int vocabulary_multiple = 128;
  ElementFormat format = ElementFormat::kBf16;
  int num_partitions = 1;  // one of which is measured
  // For replays, passes are also timed as replays launch them.
  DeviceProfile::Purpose purpose = DeviceProfile::FRAMEWORKS;
};

// A range of the model's layers, with sizes.
struct PlannedStage {
  std::string key;  // "gpt2 2 blocks + head mb 4 s 1024 tp 1 fused bf16"
  StageSpec spec;
  std::shared_ptr<const StageProgram> program;
  int num_blocks = 0;
  bool has_embedding = false, has_head = false;
};

// A whole pass, and the keys of its operations in order. The sum of their
// medians is the time of the pass, except for the gaps between kernels.
struct PlannedPass {
  std::string key;
  int stage = 0;  // index into MeasuringPlan::stages
  ProgramPass pass = ProgramPass::kForward;
  std::vector<std::string> op_keys;
  // The same pass with its operations launched one by one; empty: not planned.
  std::string stream_key;
};

// A pass on a GPU partition while other partitions work.
struct PlannedLoad {
  std::string key;
  int pass = 0;    // index into MeasuringPlan::passes: the pass alone
  int active = 2;  // working partitions, including this one
};

// A GEMM alone and overlapped with data movement.
struct PlannedOverlap {
  std::string alone_key, overlapped_key;
  bool collectives = false;  // otherwise copies
};

struct PlannedMemory {
  std::string key;
  int stage = 0;
  int num_microbatches = 1;
};

struct MeasuringPlan {
  std::string model;
  ElementFormat format = ElementFormat::kBf16;
  DeviceProfile::Purpose purpose = DeviceProfile::FRAMEWORKS;
  Workload reference;  // a GEMM that shows whether the device has drifted
  // A larger GEMM, launched without a pause until clocks are sustained. Its key
  // is empty on a GPU partition, where it is not measured.
  Workload sustained;
  std::vector<Workload> workloads;  // unique keys, in measuring order
  std::vector<PlannedStage> stages;
  std::vector<PlannedPass> passes;
  int num_partitions = 1;
  std::vector<PlannedLoad> loads;  // empty with one partition
  std::vector<PlannedOverlap> overlaps;
  std::vector<PlannedMemory> memory;
};

// Plans a calibration. On a GPU partition every pass is measured alone and
// while 2, 4, 8 ... and all partitions work. NCCL is not measured there, as it
// does not connect partitions of one GPU, nor are GEMMs overlapped with copies
// at full speed, which do not occur in replays on partitions. Returns
// InvalidArgument with the part of the model, or the option, that cannot be
// measured.
absl::StatusOr<MeasuringPlan> MakePlan(const Model& model,
                                       const PlanOptions& options);

// Keeps the workloads whose key contains `text`, and those with which their
// times are compared: the operations of a pass, and the pass alone of a pass
// under load. The sustained GEMM is kept only if other GEMMs are. Every key
// contains the empty text.
void SelectWorkloads(absl::string_view text, MeasuringPlan* plan);

// Returns a key of everything that determines the time of an operation:
// "gemm m 2048 n 6144 k 2048 ... bf16". It is the same in every run and stage.
std::string OpKey(const StageProgram& program, const StageOp& op);

// Returns a program of one GEMM, d[m, n] = a[m, k] b[k, n].
std::shared_ptr<const StageProgram> GemmProgram(double m, double n, double k,
                                                ElementFormat format);

// Returns the operation of a kOp workload. Requires: it has a program.
const StageOp& OpOf(const Workload& workload);

// Returns the peak bytes of a stage with this many forwards before the first
// backward.
double PredictedPeakBytes(const StageProgram& program, int num_microbatches);

// Estimates the device seconds of one launch from a profile's parameters.
double EstimateSeconds(const DeviceProfile& profile, const Workload& workload);
// Estimates the seconds to measure a workload, including verification and
// buffers, on one of this many partitions of the profile's GPU.
double EstimateMeasuringSeconds(const DeviceProfile& profile,
                                const Workload& workload,
                                int num_partitions = 1);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_MEASURE_MEASUREMENT_PLAN_H_
