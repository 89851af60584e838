// SPDX-License-Identifier: Apache-2.0
// What optimizers compute, on doubles: for the CPU back end and for the
// training without a pipeline that it is compared with.
#ifndef WEIR_CALIBRATE_REPLAY_OPTIMIZER_MATH_H_
#define WEIR_CALIBRATE_REPLAY_OPTIMIZER_MATH_H_

#include "absl/types/span.h"
#include "calibrate/replay/replay_plan.h"

namespace weir {

// First and second moments of a stage, both as long as its weights and 0 at
// first. Momentum keeps its velocity in the first, SGD uses none.
struct Moments {
  absl::Span<double> first, second;
};

// The learning rate of the step-th update, from 1: T1 included.
double LearningRateAt(const StageOptimizer& optimizer, int step);

// updated = weights after the step-th update, from 1. `gradients` are sums
// over the microbatches of the update (gradient_scale makes them means), and
// are cleared. `updated` may be `weights`.
void StepWeights(const StageOptimizer& optimizer, int step,
                 absl::Span<const double> weights, const Moments& moments,
                 absl::Span<double> gradients, absl::Span<double> updated);

// estimate = weights + distance x direction, what one more step would add if
// it found the moments as they are behind `step` updates:
//   kMomentum  -rate v        (SpecTrain; Kosson et al.'s linear prediction)
//   kAdam      -rate (m / (sqrt(v) + epsilon) + weight_decay w), bias corrected
//              (XPipe)
//   kSgd       0: it keeps nothing to predict from
// Before the first update it is 0. `estimate` may be `weights`.
void EstimateWeights(const StageOptimizer& optimizer, int step, double distance,
                     absl::Span<const double> weights, const Moments& moments,
                     absl::Span<double> estimate);

// PipeMare's T2 (section 3.2): estimate = weights + distance x average, of an
// average that each update moves,
// average = decay average + (1 - decay) (updated - weights).
void EstimateByAverage(double distance, absl::Span<const double> weights,
                       absl::Span<const double> average,
                       absl::Span<double> estimate);
void MoveAverage(double decay, absl::Span<const double> weights,
                 absl::Span<const double> updated, absl::Span<double> average);

// Compressed transfers: each value becomes the nearest of 2^bits - 1 levels,
// which are equally far apart, symmetric, and reach to the largest magnitude of
// the message. REQUIRES: bits is 2 to 32.
void RoundToBits(int bits, absl::Span<double> message);

}  // namespace weir

#endif  // WEIR_CALIBRATE_REPLAY_OPTIMIZER_MATH_H_
