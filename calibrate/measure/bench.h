// SPDX-License-Identifier: Apache-2.0
// The GPU interface of the measuring procedure. calibrate/gpu/ implements it
// with CUDA, tests with a simulated device of known times. Functions return
// DeadlineExceeded if the device hangs, and its other errors
// (calibrate/gpu/errors.h).
#ifndef WEIR_CALIBRATE_MEASURE_BENCH_H_
#define WEIR_CALIBRATE_MEASURE_BENCH_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "calibrate/execute/stage/stage_program.h"
#include "calibrate/profile/measured_costs.pb.h"
#include "calibrate/profile/provenance.pb.h"

namespace weir::calibrate {

// One operation or pass to run repeatedly.
struct Workload {
  enum class Kind {
    kOp,           // program.passes[pass][op] alone
    kPass,         // all operations of a pass
    kEmptyKernel,  // cost of a launch
    kCopy,         // device to device, `bytes` read and `bytes` written
    // passes[pass][op], a GEMM, overlapped with endless copies of `bytes`, or
    // with endless NCCL self-sends of `bytes` with `max_ctas` CTAs.
    kOpWithCopies,
    kOpWithCollectives,
    // NCCL on a communicator of one rank: send and receive of `bytes` to
    // itself.
    kSelfSend,
  };
  Kind kind = Kind::kOp;
  std::string key;  // unique, the same in every run: a later run resumes by it
  std::shared_ptr<const StageProgram> program;
  ProgramPass pass = ProgramPass::kForward;
  int op = 0;
  double bytes = 0;
  int max_ctas = 0;
  // For kPass on a GPU partition (Bench::num_partitions): the number of
  // partitions that work, including this one; the others repeat the passes of
  // the stage.
  int active_partitions = 1;
  // For kPass: each launch is timed alone, its operations launched one by one,
  // as in a replay. Otherwise launches come from a graph and follow each other.
  bool by_stream = false;
};

// State of the device while a batch of launches ran. 0: unknown.
struct DeviceState {
  double multiprocessor_hertz = 0;
  double watts = 0;
  double celsius = 0;
  bool power_capped = false;      // the power limit reduces the clocks
  bool thermal_slowdown = false;  // the hardware reduces the clocks
};

struct LaunchBatch {
  double seconds = 0;              // on the device, per launch
  double host_launch_seconds = 0;  // per launch, without a graph
  DeviceState state;
};

// A workload with buffers filled with random data and its algorithm chosen.
class PreparedWorkload {
 public:
  virtual ~PreparedWorkload() = default;
  // Runs the workload on NaN-filled outputs and returns its norm-wise relative
  // error against the double-precision reference, on a sample of the outputs if
  // all would take too long. Workloads that compute nothing: 0.
  virtual absl::StatusOr<double> Verify() = 0;
  // Returns the time of the workload `num_launches` times over rotating
  // buffers. A bench may queue the next batch of as many launches at the same
  // time.
  virtual absl::StatusOr<LaunchBatch> Run(int num_launches) = 0;
  virtual std::string algorithm() const { return ""; }
};

// Device memory in use, as reported by the driver, after each step.
struct MemorySteps {
  double context_bytes = 0;
  double library_bytes = 0;  // handles, modules once loaded
  double workspace_bytes = 0;
  double communicator_bytes = 0;   // NCCL, one rank, before first use; 0: none
  double communication_bytes = 0;  // additional memory taken by its first use
};

class Bench {
 public:
  virtual ~Bench() = default;
  virtual const Provenance& provenance() const = 0;
  virtual ElementFormat half_format() const = 0;  // bf16, or fp16 on old GPUs
  // The GPU is divided into this many equal partitions, and one of them, with
  // this many multiprocessors, is measured; 1 and 0 for the whole GPU. The
  // provenance is always that of the whole GPU.
  virtual int num_partitions() const { return 1; }
  virtual int part_multiprocessors() const { return 0; }
  virtual absl::StatusOr<MemorySteps> MeasureMemorySteps() = 0;
  // Returns ResourceExhausted if the workload does not fit this GPU,
  // Unimplemented if this GPU or its libraries do not support it.
  virtual absl::StatusOr<std::unique_ptr<PreparedWorkload>> Prepare(
      const Workload& workload) = 0;
  // Runs the whole stage in a pool of its own, with `num_microbatches` forwards
  // before the first backward and an optimizer update at the end.
  virtual absl::StatusOr<MeasuredMemory> MeasureStageMemory(
      const StageProgram& program, int num_microbatches) = 0;
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_MEASURE_BENCH_H_
