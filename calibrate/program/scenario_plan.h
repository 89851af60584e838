// SPDX-License-Identifier: Apache-2.0
// What a replay of a scenario executes: the schedule, the cut into stages and
// the lone transfers are the simulator's.
#ifndef WEIR_CALIBRATE_PROGRAM_SCENARIO_PLAN_H_
#define WEIR_CALIBRATE_PROGRAM_SCENARIO_PLAN_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "calibrate/replay/replay_plan.h"
#include "scenarios/scenario.h"

namespace weir {

struct ReplaySettings {
  bool on_gpu = false;     // whose kernels compute in 16 bit
  int num_partitions = 0;  // of the GPU; 0: serial
  int num_steps = 1;       // with flush; without, batches are the simulator's
  uint64_t seed = 1;
  double learning_rate = 0;  // 0: the optimizer's, below
  double timeout_seconds = 120;
  bool is_checked = true;  // what was trained is compared, where it can be
};

inline constexpr double kAdamLearningRate = 1e-4;
inline constexpr double kSgdLearningRate = 0.05;
// Where a scenario has dropout, which says no probability.
inline constexpr float kDropout = 0.1F;

// InvalidArgument names every field of the scenario that replays do not do,
// with the flag to give instead. Errors of Simulate, too: without flush it says
// how many batches there are.
absl::StatusOr<ReplayPlan> PlanOfScenario(const ResolvedScenario& scenario,
                                          const ReplaySettings& settings);

}  // namespace weir

#endif  // WEIR_CALIBRATE_PROGRAM_SCENARIO_PLAN_H_
