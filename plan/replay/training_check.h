// SPDX-License-Identifier: Apache-2.0
// Checks the results of a replay's training.
#ifndef WEIR_PLAN_REPLAY_TRAINING_CHECK_H_
#define WEIR_PLAN_REPLAY_TRAINING_CHECK_H_

#include <string>

#include "absl/status/statusor.h"
#include "calibrate/execute/execution_plan.h"
#include "calibrate/execute/execution_record.h"
#include "calibrate/execute/sequential.h"

namespace weir::plan {

// Limits of the fields of TrainingDifference.
struct TrainingTolerance {
  double weights = 0, change = 0, losses = 0;
};

// In double precision: errors from the order of summation. The limit of
// `change` is larger because Adam divides gradients that are 0 except for these
// errors (the largest observed is 2e-12).
inline constexpr TrainingTolerance kHostTolerance = {1e-12, 1e-10, 1e-12};
// Returns the tolerance on a GPU. The same kernels compute the same products,
// but sums may have another order, and a value that then rounds differently
// affects everything computed from it: four times the unit roundoff u of the
// format (bf16: 2^-9). Adam's early steps are the signs of gradients: if a
// gradient's error is e of its usual size, about a fraction e of the signs
// flip, which changes the step by 2 sqrt(e); e = u / 4.
TrainingTolerance GpuTolerance(calibrate::ElementFormat format,
                               Optimizer optimizer);

struct TrainingCheck {
  std::string formula;  // the reference of the comparison; empty: none
  std::string why_not;  // the reason, if `formula` is empty
  calibrate::TrainingDifference difference;
  TrainingTolerance tolerance;

  bool holds() const {
    return formula.empty() || (difference.weights <= tolerance.weights &&
                               difference.change <= tolerance.change &&
                               difference.losses <= tolerance.losses);
  }
};

// Compares with the papers' formulas, computed sequentially on a device opened
// by `open` (TrainSequentially). Not checked if no formula is known or the
// memory of that device does not suffice. Returns other errors of
// TrainSequentially.
absl::StatusOr<TrainingCheck> CheckTraining(
    const calibrate::ExecutionPlan& plan,
    const calibrate::ExecutionRecord& record, const calibrate::OpenDevice& open,
    const TrainingTolerance& tolerance);

}  // namespace weir::plan

#endif  // WEIR_PLAN_REPLAY_TRAINING_CHECK_H_
