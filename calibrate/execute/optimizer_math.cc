// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/optimizer_math.h"

#include <algorithm>
#include <cmath>

namespace weir::calibrate {
namespace {

// m / (sqrt(v) + epsilon), where both are corrected for their start at 0.
class AdamDirection {
 public:
  AdamDirection(const AdamStep& adam, int step)
      : epsilon_(adam.epsilon),
        correction1_(1 - std::pow(double{adam.beta1}, step)),
        correction2_(1 - std::pow(double{adam.beta2}, step)) {}

  double operator()(double first, double second) const {
    return first / correction1_ / (std::sqrt(second / correction2_) + epsilon_);
  }

 private:
  double epsilon_, correction1_, correction2_;
};

}  // namespace

double LearningRateAt(const StageOptimizer& optimizer, int step) {
  if (optimizer.delay_steps == 0) return optimizer.learning_rate;
  const double done = static_cast<double>(step - 1) / optimizer.delay_steps;
  return optimizer.learning_rate /
         std::pow(optimizer.delay, 1 - std::min(done, 1.0));
}

void StepWeights(const StageOptimizer& optimizer, int step,
                 absl::Span<const double> weights, const Moments& moments,
                 absl::Span<double> gradients, absl::Span<double> updated) {
  const double rate = LearningRateAt(optimizer, step);
  const double beta1 = optimizer.adam.beta1, beta2 = optimizer.adam.beta2;
  const AdamDirection direction(optimizer.adam, step);
  for (size_t i = 0; i < weights.size(); ++i) {
    const double g = gradients[i] * optimizer.gradient_scale;
    gradients[i] = 0;
    if (optimizer.kind == ADAM) {
      double &m = moments.first[i], &v = moments.second[i];
      m = beta1 * m + (1 - beta1) * g;
      v = beta2 * v + (1 - beta2) * g * g;
      updated[i] = weights[i] -
                   rate * (direction(m, v) +
                           double{optimizer.adam.weight_decay} * weights[i]);
    } else {
      double& v = moments.first[i];
      v = optimizer.momentum * v + g;
      updated[i] = weights[i] - rate * (optimizer.velocity_weight * v +
                                        optimizer.gradient_weight * g);
    }
  }
}

void EstimateWeights(const StageOptimizer& optimizer, int step, double distance,
                     absl::Span<const double> weights, const Moments& moments,
                     absl::Span<double> estimate) {
  if (step == 0 || distance == 0) {
    std::copy(weights.begin(), weights.end(), estimate.begin());
    return;
  }
  const double far = distance * LearningRateAt(optimizer, step + 1);
  if (optimizer.kind != ADAM) {
    for (size_t i = 0; i < weights.size(); ++i) {
      estimate[i] = weights[i] - far * moments.first[i];
    }
    return;
  }
  const AdamDirection direction(optimizer.adam, step);
  const double decay = optimizer.adam.weight_decay;
  for (size_t i = 0; i < weights.size(); ++i) {
    estimate[i] =
        weights[i] - far * (direction(moments.first[i], moments.second[i]) +
                            decay * weights[i]);
  }
}

void EstimateByAverage(double distance, absl::Span<const double> weights,
                       absl::Span<const double> average,
                       absl::Span<double> estimate) {
  for (size_t i = 0; i < weights.size(); ++i) {
    estimate[i] = weights[i] + distance * average[i];
  }
}

void MoveAverage(double decay, absl::Span<const double> weights,
                 absl::Span<const double> updated, absl::Span<double> average) {
  for (size_t i = 0; i < weights.size(); ++i) {
    average[i] = decay * average[i] + (1 - decay) * (updated[i] - weights[i]);
  }
}

void RoundToBits(int bits, absl::Span<double> message) {
  double largest = 0;
  for (const double x : message) largest = std::max(largest, std::abs(x));
  if (largest == 0) return;
  const double levels = std::ldexp(1.0, bits - 1) - 1;
  for (double& x : message) {
    x = std::nearbyint(x / largest * levels) / levels * largest;
  }
}

}  // namespace weir::calibrate
