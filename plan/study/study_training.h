// SPDX-License-Identifier: Apache-2.0
// One training of a study.
#ifndef WEIR_PLAN_STUDY_STUDY_TRAINING_H_
#define WEIR_PLAN_STUDY_STUDY_TRAINING_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "calibrate/execute/execution_plan.h"
#include "plan/study/study.h"
#include "schedules/schedule.h"

namespace weir::plan {

inline constexpr int kStudyMicrobatchSize = 2;  // sequences, in the training

// Returns the training of the request's model with this schedule. Updates of
// fewer samples have a proportionally lower learning rate (linear scaling).
// Returns the errors of MakeExecutionPlan.
absl::StatusOr<calibrate::ExecutionPlan> StudyTrainingPlan(
    const StudyRequest& request, const schedules::Schedule& schedule,
    uint64_t seed);

// Trains and returns the mean loss of each batch. Returns the errors of
// ExecuteSchedule.
absl::StatusOr<std::vector<double>> TrainOnHost(
    const calibrate::ExecutionPlan& plan);

}  // namespace weir::plan

#endif  // WEIR_PLAN_STUDY_STUDY_TRAINING_H_
