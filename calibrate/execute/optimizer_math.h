// SPDX-License-Identifier: Apache-2.0
// Optimizer updates on doubles, for the CPU back end and for the reference
// training without a pipeline.
#ifndef WEIR_CALIBRATE_EXECUTE_OPTIMIZER_MATH_H_
#define WEIR_CALIBRATE_EXECUTE_OPTIMIZER_MATH_H_

#include "absl/types/span.h"
#include "calibrate/execute/execution_plan.h"

namespace weir::calibrate {

// First and second moments of a stage, both as long as its weights and
// initially 0. Momentum keeps its velocity in `first`, SGD uses neither.
struct Moments {
  absl::Span<double> first, second;
};

// Returns the learning rate of the step-th update, from 1, including T1.
double LearningRateAt(const StageOptimizer& optimizer, int step);

// Computes updated = weights after the step-th update, from 1. `gradients` are
// sums over the microbatches of the update (gradient_scale makes them means),
// and are cleared. `updated` may be `weights`.
void StepWeights(const StageOptimizer& optimizer, int step,
                 absl::Span<const double> weights, const Moments& moments,
                 absl::Span<double> gradients, absl::Span<double> updated);

// Computes estimate = weights + distance x direction, where the direction is
// the step that the optimizer would add with the moments after `step` updates:
//   SGD_MOMENTUM  -rate v     (SpecTrain; Kosson et al.'s linear prediction)
//   ADAM          -rate (m / (sqrt(v) + epsilon) + weight_decay w), bias
//                 corrected (XPipe)
// The direction is 0 before the first update. `estimate` may be `weights`.
void EstimateWeights(const StageOptimizer& optimizer, int step, double distance,
                     absl::Span<const double> weights, const Moments& moments,
                     absl::Span<double> estimate);

// PipeMare's T2 (section 3.2): computes estimate = weights + distance x
// average. Each update changes the average:
// average = decay average + (1 - decay) (updated - weights).
void EstimateByAverage(double distance, absl::Span<const double> weights,
                       absl::Span<const double> average,
                       absl::Span<double> estimate);
void MoveAverage(double decay, absl::Span<const double> weights,
                 absl::Span<const double> updated, absl::Span<double> average);

// Rounds each value of a compressed transfer to the nearest of 2^bits - 1
// levels, which are equidistant and symmetric and extend to the largest
// magnitude of the message. Requires: bits is 2 to 32.
void RoundToBits(int bits, absl::Span<double> message);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_OPTIMIZER_MATH_H_
