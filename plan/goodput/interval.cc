// SPDX-License-Identifier: Apache-2.0
#include "plan/goodput/interval.h"

#include <algorithm>
#include <cmath>

namespace weir::plan {
namespace {

// Returns y + log(1 - y) without cancellation.
double NegativeLoss(double y) {
  if (y > 0.1) return y + std::log1p(-y);
  double sum = 0, power = y;
  for (int k = 2; k < 20; ++k) {
    power *= y;
    sum -= power / k;
  }
  return sum;
}

}  // namespace

double YoungInterval(double stall_seconds, double mean_seconds) {
  return std::sqrt(2 * stall_seconds * mean_seconds);
}

double DalyInterval(double stall_seconds, double mean_seconds) {
  if (stall_seconds >= 2 * mean_seconds) return mean_seconds;
  const double part = stall_seconds / (2 * mean_seconds);
  return YoungInterval(stall_seconds, mean_seconds) *
             (1 + std::sqrt(part) / 3 + part / 9) -
         stall_seconds;
}

double ExactInterval(double stall_seconds, double mean_seconds) {
  // With y = tau / M: y + log(1 - y) = -delta / M, whose left side falls from
  // 0 to minus infinity on (0, 1). Newton's method, with bisection where it
  // leaves the bracket.
  const double target = stall_seconds / mean_seconds;
  double low = 0, high = 1;
  double y = std::min(std::sqrt(2 * target), 0.999);
  for (int i = 0; i < 200; ++i) {
    const double value = NegativeLoss(y) + target;
    (value > 0 ? low : high) = y;
    double next = y + value * (1 - y) / y;
    if (!(next > low && next < high)) next = (low + high) / 2;
    if (std::abs(next - y) <= 1e-16 * y) break;
    y = next;
  }
  return y * mean_seconds;
}

double ExpectedSeconds(double work_seconds, double interval_seconds,
                       double stall_seconds, double restart_seconds,
                       double mean_seconds) {
  return mean_seconds * std::exp(restart_seconds / mean_seconds) *
         std::expm1((interval_seconds + stall_seconds) / mean_seconds) *
         work_seconds / interval_seconds;
}

double LargestLossSeconds(double useful_part, double mean_seconds) {
  return (1 - useful_part) * mean_seconds;
}

}  // namespace weir::plan
