// SPDX-License-Identifier: Apache-2.0
#include "cli/weir_calibrate/training_check.h"

#include <cmath>

#include "base/status_macros.h"

namespace weir {
namespace {

// Relative error of rounding a number near 1 to the format.
double UnitRoundoff(ElementFormat format) {
  switch (format) {
    case ElementFormat::kBf16:
      return std::exp2(-9);
    case ElementFormat::kFp16:
      return std::exp2(-12);
    default:
      return std::exp2(-24);
  }
}

}  // namespace

TrainingTolerance GpuTolerance(ElementFormat format, OptimizerKind optimizer) {
  const double u = UnitRoundoff(format);
  return {.weights = 4 * u,
          .change = optimizer == OptimizerKind::kAdam ? std::sqrt(u) : 4 * u,
          .losses = 4 * u};
}

absl::StatusOr<TrainingCheck> CheckTraining(
    const ExecutionPlan& plan, const ExecutionRecord& record,
    const OpenDevice& open, const TrainingTolerance& tolerance) {
  TrainingCheck check;
  const absl::StatusOr<SequentialRecord> formula =
      TrainSequentially(plan, open);
  if (absl::IsNotFound(formula.status()) ||
      absl::IsResourceExhausted(formula.status())) {
    check.why_not = std::string(formula.status().message());
    return check;
  }
  RETURN_IF_ERROR(formula.status());
  check.formula = formula->formula;
  check.difference = DifferenceOf(plan, record, *formula);
  check.tolerance = tolerance;
  return check;
}

}  // namespace weir
