// SPDX-License-Identifier: Apache-2.0
// Finds the factor of one parameter with which a prediction equals a
// measurement.
#ifndef WEIR_PLAN_SENSITIVITY_SOLVE_FACTOR_H_
#define WEIR_PLAN_SENSITIVITY_SOLVE_FACTOR_H_

#include <functional>
#include <optional>

namespace weir::plan {

struct FactorProblem {
  // Returns the predicted seconds with the parameter times `factor`; nullopt if
  // there is no prediction.
  std::function<std::optional<double>(double factor)> seconds;
  double target_seconds = 0;
  double start_seconds = 0;  // seconds(1)
  double elasticity = 0;     // d ln(seconds) / d ln(factor) at 1, not 0
  // Largest and smallest valid factors; low <= 1 <= high.
  double low = 0.01, high = 100;
};

// Returns a factor in [low, high] whose prediction differs from the target by
// less than 0.01 %, or nullopt if there is none in the direction in which the
// elasticity leads to the target, or in the other one. The prediction need not
// be smooth or monotonic: the search brackets a crossing and narrows it by
// false position and bisection. A crossing at which the prediction jumps over
// the target by more than 0.5 % is no solution. Calls seconds() at most about
// 40 times.
std::optional<double> SolveFactor(const FactorProblem& problem);

// Returns the largest factor between 1 and `limit` (or the smallest, if limit
// is below 1) that is valid, to 0.1 %. Requires: valid(1), and that valid
// factors are an interval.
double ValidLimit(double limit, const std::function<bool(double)>& valid);

}  // namespace weir::plan

#endif  // WEIR_PLAN_SENSITIVITY_SOLVE_FACTOR_H_
