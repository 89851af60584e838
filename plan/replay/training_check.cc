// SPDX-License-Identifier: Apache-2.0
#include "plan/replay/training_check.h"

#include <cmath>

#include "base/status_macros.h"

namespace weir::plan {
namespace {

// Relative error of rounding a number near 1 to the format.
double UnitRoundoff(calibrate::ElementFormat format) {
  switch (format) {
    case calibrate::ElementFormat::kBf16:
      return std::exp2(-9);
    case calibrate::ElementFormat::kFp16:
      return std::exp2(-12);
    default:
      return std::exp2(-24);
  }
}

}  // namespace

TrainingTolerance GpuTolerance(calibrate::ElementFormat format,
                               Optimizer optimizer) {
  const double u = UnitRoundoff(format);
  return {.weights = 4 * u,
          .change = optimizer == ADAM ? std::sqrt(u) : 4 * u,
          .losses = 4 * u};
}

absl::StatusOr<TrainingCheck> CheckTraining(
    const calibrate::ExecutionPlan& plan,
    const calibrate::ExecutionRecord& record, const calibrate::OpenDevice& open,
    const TrainingTolerance& tolerance) {
  TrainingCheck check;
  const absl::StatusOr<calibrate::SequentialRecord> formula =
      calibrate::TrainSequentially(plan, open);
  if (absl::IsNotFound(formula.status()) ||
      absl::IsResourceExhausted(formula.status())) {
    check.why_not = std::string(formula.status().message());
    return check;
  }
  RETURN_IF_ERROR(formula.status());
  check.formula = formula->formula;
  check.difference = calibrate::DifferenceOf(plan, record, *formula);
  check.tolerance = tolerance;
  return check;
}

}  // namespace weir::plan
