// SPDX-License-Identifier: Apache-2.0
#include "plan/sensitivity/solve_factor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace weir::plan::solve_factor_test {

FactorProblem Problem(const std::function<double(double)>& seconds,
                      double target) {
  FactorProblem problem;
  problem.seconds = [=](double factor) { return seconds(factor); };
  problem.target_seconds = target;
  problem.start_seconds = seconds(1);
  problem.elasticity = std::log(seconds(1.01) / seconds(1)) / std::log(1.01);
  return problem;
}

TEST(SolveFactorTest, FindsTheFactorOfARateAndOfALatency) {
  const auto rate = [](double f) { return 3 + 7 / f; };
  const auto slower = SolveFactor(Problem(rate, 13));
  ASSERT_TRUE(slower.has_value());
  EXPECT_NEAR(*slower, 0.7, 1e-3);
  const auto faster = SolveFactor(Problem(rate, 4));
  ASSERT_TRUE(faster.has_value());
  EXPECT_NEAR(*faster, 7, 1e-2);
  const auto latency =
      SolveFactor(Problem([](double f) { return 9.9 + 0.1 * f; }, 12));
  ASSERT_TRUE(latency.has_value());
  EXPECT_NEAR(*latency, 21, 0.1);
}

TEST(SolveFactorTest, KnowsWhatOneFigureCannotExplain) {
  const auto rate = [](double f) { return 3 + 7 / f; };
  EXPECT_FALSE(SolveFactor(Problem(rate, 2.9)).has_value());
  EXPECT_FALSE(SolveFactor(Problem(rate, 1000)).has_value());
  FactorProblem limited = Problem(rate, 5);
  limited.high = 2;  // 3.5 would be needed
  EXPECT_FALSE(SolveFactor(limited).has_value());
  limited.high = 4;
  EXPECT_TRUE(SolveFactor(limited).has_value());
}

TEST(SolveFactorTest, ConvergesWithKinksAndPlateaus) {
  // Host time hides the change until the rate is half as large.
  const auto hidden = [](double f) { return std::max(10 - 0.01 * f, 5 / f); };
  const auto factor = SolveFactor(Problem(hidden, 20));
  ASSERT_TRUE(factor.has_value());
  EXPECT_NEAR(*factor, 0.25, 1e-3);
  // The elasticity at 1 leads in the wrong direction.
  const auto turning = [](double f) {
    return f < 1.2 ? 10 / f : 25 / 3.0 + 5 * (f - 1.2);
  };
  FactorProblem problem = Problem(turning, 12);
  problem.low = 0.95;
  const auto other = SolveFactor(problem);
  ASSERT_TRUE(other.has_value());
  EXPECT_NEAR(turning(*other), 12, 0.01);
}

TEST(SolveFactorTest, AJumpOverTheTargetIsNoSolution) {
  const auto jump = [](double f) { return f < 0.5 ? 20.0 : 10 - 0.1 * f; };
  EXPECT_FALSE(SolveFactor(Problem(jump, 15)).has_value());
}

TEST(SolveFactorTest, NothingToExplainIsAFactorOfOne) {
  const auto rate = [](double f) { return 10 / f; };
  EXPECT_EQ(SolveFactor(Problem(rate, 10)), 1);
}

TEST(SolveFactorTest, AMissingPredictionEndsTheSearch) {
  FactorProblem problem = Problem([](double f) { return 10 / f; }, 20);
  problem.seconds = [](double) { return std::nullopt; };
  EXPECT_FALSE(SolveFactor(problem).has_value());
}

TEST(SolveFactorTest, LimitsAreTheLargestValidFactors) {
  const auto valid = [](double f) { return f >= 0.2 && f <= 1.5; };
  EXPECT_NEAR(ValidLimit(100, valid), 1.5, 0.002);
  EXPECT_LE(ValidLimit(100, valid), 1.5);
  EXPECT_NEAR(ValidLimit(0.01, valid), 0.2, 0.001);
  EXPECT_EQ(ValidLimit(1.2, valid), 1.2);
}

}  // namespace weir::plan::solve_factor_test
