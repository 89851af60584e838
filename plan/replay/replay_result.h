// SPDX-License-Identifier: Apache-2.0
// Converts the record of a replay to a Result, which every view of weir shows
// and `weir validate` compares.
#ifndef WEIR_PLAN_REPLAY_REPLAY_RESULT_H_
#define WEIR_PLAN_REPLAY_REPLAY_RESULT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "calibrate/execute/execution_plan.h"
#include "calibrate/execute/execution_record.h"
#include "calibrate/profile/provenance.pb.h"
#include "plan/replay/training_check.h"
#include "results/result.pb.h"
#include "scenarios/scenario.h"

namespace weir::plan {

struct FinishedReplay {
  const scenarios::ResolvedScenario& scenario;
  const calibrate::ExecutionPlan& plan;
  const calibrate::ExecutionRecord& record;  // has at least one step
  Provenance provenance;                     // the device's
  bool serial = false;
  TrainingCheck check;
};

// Returns the result with method "replay". Timeline, memory and all ratios are
// those of the step with the median makespan (the shorter of two). Returns
// InvalidArgument if no step has finished.
absl::StatusOr<Result> ResultOfReplay(const FinishedReplay& replay);

// Returns the index of that step.
int MedianStep(const std::vector<calibrate::StepRecord>& steps);

}  // namespace weir::plan

#endif  // WEIR_PLAN_REPLAY_REPLAY_RESULT_H_
