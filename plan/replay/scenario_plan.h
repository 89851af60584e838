// SPDX-License-Identifier: Apache-2.0
// The replay plan of a scenario: schedule, partition into stages and
// uncontended transfer times are the simulator's.
#ifndef WEIR_PLAN_REPLAY_SCENARIO_PLAN_H_
#define WEIR_PLAN_REPLAY_SCENARIO_PLAN_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "calibrate/execute/execution_plan.h"
#include "scenarios/scenario.h"

namespace weir::plan {

struct ReplaySettings {
  bool on_gpu = false;     // 16-bit kernels
  int num_partitions = 0;  // partitions of the GPU; 0: serial
  // With flush; otherwise the simulator determines the batches.
  int num_steps = 1;
  uint64_t seed = 1;
  double learning_rate = 0;  // 0: the optimizer's, below
  double timeout_seconds = 120;
  // The training is compared with a formula if possible.
  bool is_checked = true;
};

inline constexpr double kAdamLearningRate = 1e-4;
inline constexpr double kSgdLearningRate = 0.05;
// Used if a scenario has dropout, as scenarios specify no probability.
inline constexpr float kDropout = 0.1F;

// Returns the plan of a scenario, or InvalidArgument with every field that
// replays do not support and the flag to use instead. Also returns errors of
// Simulate(), which determines the number of batches without flush, and for a
// GPU the predicted peaks of the ranks' memory.
absl::StatusOr<calibrate::ExecutionPlan> PlanOfScenario(
    const scenarios::ResolvedScenario& scenario,
    const ReplaySettings& settings);

}  // namespace weir::plan

#endif  // WEIR_PLAN_REPLAY_SCENARIO_PLAN_H_
