// SPDX-License-Identifier: Apache-2.0
// The executors of a plan's stages, their products' algorithms chosen.
#ifndef WEIR_CALIBRATE_GPU_STAGE_EXECUTORS_H_
#define WEIR_CALIBRATE_GPU_STAGE_EXECUTORS_H_

#include <map>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "calibrate/gpu/bench_device.h"
#include "calibrate/gpu/executor.h"
#include "calibrate/replay/replay_plan.h"

namespace weir {

class StageExecutors {
 public:
  // Of `stages`, one for each distinct program. With `tune` candidates are
  // timed on random data, in memory that is given back before this returns;
  // what does not fit, or is not to be tuned, has the heuristics' first.
  // Unimplemented, ResourceExhausted: an operation that cannot be run.
  static absl::StatusOr<StageExecutors> Create(const BenchDevice& device,
                                               const ReplayPlan& plan,
                                               const std::vector<int>& stages,
                                               const ExecutorOptions& options,
                                               ProductLibrary* products,
                                               const Lane& lane, bool tune);

  const StageExecutor& of(int stage) const { return *by_stage_.at(stage); }

 private:
  std::map<const StageProgram*, std::unique_ptr<StageExecutor>> executors_;
  std::map<int, const StageExecutor*> by_stage_;
};

}  // namespace weir

#endif  // WEIR_CALIBRATE_GPU_STAGE_EXECUTORS_H_
