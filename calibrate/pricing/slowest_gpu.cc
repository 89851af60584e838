// SPDX-License-Identifier: Apache-2.0
#include "calibrate/pricing/slowest_gpu.h"

#include <cmath>
#include <numbers>

namespace weir::calibrate {
namespace {

double NormalDistribution(double x) {
  return std::erfc(-x / std::numbers::sqrt2) / 2;
}

}  // namespace

double ExpectedMaximum(int count) {
  if (count <= 1) return 0;
  // The integral of 1 - P(max < x) over x > 0 less that of P(max < x) over
  // x < 0. The trapezoidal rule converges exponentially here; the integrand is
  // below 1e-16 outside of the limits for all counts of int.
  constexpr double kLimit = 11;
  constexpr int kSteps = 220;
  constexpr double kStep = kLimit / kSteps;
  double sum = 0;
  for (int i = 0; i <= kSteps; ++i) {
    const double x = i * kStep;
    const double weight = i == 0 ? 0.5 : 1;
    const double above =
        -std::expm1(count * std::log1p(-NormalDistribution(-x)));
    const double below = std::pow(NormalDistribution(-x), count);
    sum += weight * (above - below);
  }
  return sum * kStep;
}

}  // namespace weir::calibrate
