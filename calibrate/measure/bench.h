// SPDX-License-Identifier: Apache-2.0
// What the measuring procedure needs of a GPU. calibrate/gpu/ implements it
// with CUDA, tests with a pretended device whose times are known.
#ifndef WEIR_CALIBRATE_MEASURE_BENCH_H_
#define WEIR_CALIBRATE_MEASURE_BENCH_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "calibrate/measured_costs.pb.h"
#include "calibrate/provenance.pb.h"
#include "calibrate/stage/stage_program.h"

namespace weir {

// One thing to run again and again.
struct Workload {
  enum class Kind {
    kOp,           // program.passes[pass][op] alone
    kPass,         // all of a pass
    kEmptyKernel,  // what launching costs
    kCopy,         // device to device, `bytes` read and as many written
    // passes[pass][op], a product, beside endless copies of `bytes`, or beside
    // endless self-sends of NCCL of `bytes` with `max_ctas` CTAs.
    kOpBesideCopies,
    kOpBesideCollectives,
    // NCCL on a communicator of one rank: send and receive of `bytes` to self.
    kSelfSend,
  };
  Kind kind = Kind::kOp;
  std::string key;  // unique, the same in every run: results resume by it
  std::shared_ptr<const StageProgram> program;
  StagePass pass = StagePass::kForward;
  int op = 0;
  double bytes = 0;
  int max_ctas = 0;
  // kPass on a part of a card (Bench::num_partitions): so many parts work, this
  // one among them, the others on the stage's passes again and again.
  int active_partitions = 1;
};

// What the device did while a batch of launches ran. 0: unknown.
struct DeviceState {
  double multiprocessor_hertz = 0;
  double watts = 0;
  double celsius = 0;
  bool power_capped = false;      // the power limit holds the clocks
  bool thermal_slowdown = false;  // or the hardware does
};

struct LaunchBatch {
  double seconds = 0;              // on the device, per launch
  double host_launch_seconds = 0;  // per launch, without a graph
  DeviceState state;
};

// A workload with its buffers filled with random data, its algorithm chosen.
class PreparedWorkload {
 public:
  virtual ~PreparedWorkload() = default;
  // Runs it on NaN-poisoned outputs against the double-precision reference (a
  // sample of the outputs where the whole would take too long): the norm-wise
  // relative error. Workloads that compute nothing: 0.
  virtual absl::StatusOr<double> Verify() = 0;
  // Runs it `num_launches` times over rotating buffers.
  virtual absl::StatusOr<LaunchBatch> Run(int num_launches) = 0;
  virtual std::string algorithm() const { return ""; }
};

// Device memory in use, as the driver says it, after each step.
struct MemorySteps {
  double context_bytes = 0;
  double library_bytes = 0;  // handles, modules once loaded
  double workspace_bytes = 0;
  double communicator_bytes = 0;   // NCCL, one rank, before first use; 0: none
  double communication_bytes = 0;  // what its first use took besides
};

class Bench {
 public:
  virtual ~Bench() = default;
  virtual const Provenance& provenance() const = 0;
  virtual ElementFormat half_format() const = 0;  // bf16, fp16 on old cards
  // The card is cut into so many equal parts, and one of them, with so many
  // multiprocessors, is what is measured; 1 and 0: all of the card. The
  // provenance is the whole card's.
  virtual int num_partitions() const { return 1; }
  virtual int part_multiprocessors() const { return 0; }
  virtual absl::StatusOr<MemorySteps> MeasureMemorySteps() = 0;
  // ResourceExhausted: does not fit this GPU. Unimplemented: this GPU or its
  // libraries cannot do it.
  virtual absl::StatusOr<std::unique_ptr<PreparedWorkload>> Prepare(
      const Workload& workload) = 0;
  // The whole stage in a pool of its own, `num_microbatches` forwards before
  // the first backward, with an update at the end.
  virtual absl::StatusOr<MeasuredMemory> MeasureStageMemory(
      const StageProgram& program, int num_microbatches) = 0;
};

}  // namespace weir

#endif  // WEIR_CALIBRATE_MEASURE_BENCH_H_
