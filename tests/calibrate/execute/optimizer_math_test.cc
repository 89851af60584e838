// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/optimizer_math.h"

#include <gmock/gmock.h>

#include <cmath>

#include "calibrate/execute/reference/reference_ops.h"

namespace weir::calibrate::optimizer_math_test {

struct Stage {
  std::vector<double> weights = {1, -2}, first = {0, 0}, second = {0, 0};
  Moments moments() { return {absl::MakeSpan(first), absl::MakeSpan(second)}; }
  void Step(const StageOptimizer& optimizer, int step,
            std::vector<double> gradients) {
    StepWeights(optimizer, step, weights, moments(), absl::MakeSpan(gradients),
                absl::MakeSpan(weights));
    EXPECT_THAT(gradients, testing::Each(0));
  }
  std::vector<double> Estimate(const StageOptimizer& optimizer, int step,
                               double distance) {
    std::vector<double> estimate(2);
    EstimateWeights(optimizer, step, distance, weights, moments(),
                    absl::MakeSpan(estimate));
    return estimate;
  }
};

TEST(OptimizerMathTest, SgdStepsByTheMean) {
  Stage stage;
  stage.Step({.learning_rate = 0.5, .momentum = 0, .gradient_scale = 0.25}, 1,
             {4, 8});
  EXPECT_EQ(stage.weights, (std::vector<double>{0.5, -3}));
}

TEST(OptimizerMathTest, MomentumKeepsAVelocity) {
  const StageOptimizer momentum{.learning_rate = 0.5, .momentum = 0.5};
  Stage stage;
  EXPECT_EQ(stage.Estimate(momentum, 0, 2), stage.weights);
  stage.Step(momentum, 1, {1, 2});
  EXPECT_EQ(stage.weights, (std::vector<double>{0.5, -3}));
  stage.Step(momentum, 2, {1, 2});  // v = 1.5, 3
  EXPECT_EQ(stage.weights, (std::vector<double>{-0.25, -4.5}));
  EXPECT_EQ(stage.Estimate(momentum, 2, 2), (std::vector<double>{-1.75, -7.5}));
}

TEST(OptimizerMathTest, SpikesAreCompensated) {
  Stage stage;
  stage.first = {1, 0};
  stage.Step({.learning_rate = 1,
              .momentum = 0.5,
              .velocity_weight = 0.25,
              .gradient_weight = 1.5},
             7, {2, 4});  // v = 2.5, 4
  EXPECT_EQ(stage.weights, (std::vector<double>{1 - 0.625 - 3, -2 - 1 - 6}));
}

// Compares with the operation that GPUs run, which has its own test against the
// papers' formula.
TEST(OptimizerMathTest, AdamIsTheOperation) {
  const AdamStep adam{.learning_rate = 0.125F, .weight_decay = 0.25F};
  StageOptimizer optimizer{.kind = ADAM, .learning_rate = 0.125, .adam = adam};
  Stage stage;
  StageOp op;
  op.kind = OpKind::kAdam;
  op.rows = 1;
  op.columns = 2;
  op.adam = adam;
  std::vector<double> master = stage.weights, first(2), second(2), weights(2);
  for (int step = 1; step <= 3; ++step) {
    std::vector<double> gradient = {0.5 * step, -3.0 / step};
    const std::vector<double> before = stage.weights;
    stage.Step(optimizer, step, gradient);
    op.adam.step = step;
    const std::vector<double*> tensors = {gradient.data(), master.data(),
                                          first.data(), second.data(),
                                          weights.data()};
    RunReference(op, std::vector<const double*>(tensors.begin(), tensors.end()),
                 tensors);
    for (int i = 0; i < 2; ++i) {
      EXPECT_NEAR(stage.weights[i], master[i], 1e-15);
      // The prediction assumes that the next steps repeat this one.
      const double estimate = stage.Estimate(optimizer, step, 2)[i];
      const double moved = stage.weights[i] - before[i] +
                           0.125 * 0.25 * (before[i] - stage.weights[i]);
      EXPECT_NEAR(estimate, stage.weights[i] + 2 * moved, 1e-15);
    }
  }
}

TEST(OptimizerMathTest, AveragesMoveAndExtrapolate) {
  std::vector<double> average = {1};
  MoveAverage(0.75, {2.0}, {4.0}, absl::MakeSpan(average));
  EXPECT_EQ(average[0], 1.25);
  std::vector<double> estimate(1);
  EstimateByAverage(-2, {3.0}, average, absl::MakeSpan(estimate));
  EXPECT_EQ(estimate[0], 0.5);
}

TEST(OptimizerMathTest, RatesAnneal) {
  const StageOptimizer optimizer{
      .learning_rate = 0.5, .delay = 4, .delay_steps = 2};
  EXPECT_EQ(LearningRateAt(optimizer, 1), 0.125);
  EXPECT_EQ(LearningRateAt(optimizer, 2), 0.25);
  EXPECT_EQ(LearningRateAt(optimizer, 3), 0.5);
  EXPECT_EQ(LearningRateAt(optimizer, 9), 0.5);
  EXPECT_EQ(LearningRateAt({.learning_rate = 0.5, .delay = 4}, 1), 0.5);
}

TEST(OptimizerMathTest, MessagesAreRoundedToLevels) {
  std::vector<double> message = {-3, 0.4, 1.6, 2.6};  // levels of 1: 3 bits
  RoundToBits(3, absl::MakeSpan(message));
  EXPECT_THAT(message, testing::Pointwise(testing::DoubleNear(1e-15),
                                          {-3.0, 0.0, 2.0, 3.0}));
  message = {0, 0};
  RoundToBits(3, absl::MakeSpan(message));
  EXPECT_EQ(message, (std::vector<double>{0, 0}));
}

}  // namespace weir::calibrate::optimizer_math_test
