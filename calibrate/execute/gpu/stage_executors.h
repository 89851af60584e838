// SPDX-License-Identifier: Apache-2.0
// The executors of a plan's stages, with the GEMM algorithms chosen.
#ifndef WEIR_CALIBRATE_EXECUTE_GPU_STAGE_EXECUTORS_H_
#define WEIR_CALIBRATE_EXECUTE_GPU_STAGE_EXECUTORS_H_

#include <map>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "calibrate/execute/execution_plan.h"
#include "calibrate/gpu/bench_device.h"
#include "calibrate/gpu/executor.h"

namespace weir::calibrate {

class StageExecutors {
 public:
  // Creates executors for `stages`, one per distinct program. With `tune`,
  // candidates are timed on random data, in memory that is freed before this
  // returns; without, or if the memory does not suffice, the first candidate of
  // the heuristics is used. Returns Unimplemented or ResourceExhausted if an
  // operation cannot be run.
  static absl::StatusOr<StageExecutors> Create(const BenchDevice& device,
                                               const ExecutionPlan& plan,
                                               const std::vector<int>& stages,
                                               const ExecutorOptions& options,
                                               GemmLibrary* gemms,
                                               const Lane& lane, bool tune);

  const StageExecutor& of(int stage) const { return *by_stage_.at(stage); }

 private:
  std::map<const StageProgram*, std::unique_ptr<StageExecutor>> executors_;
  std::map<int, const StageExecutor*> by_stage_;
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_GPU_STAGE_EXECUTORS_H_
