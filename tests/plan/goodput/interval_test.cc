// SPDX-License-Identifier: Apache-2.0
#include "plan/goodput/interval.h"

#include <gtest/gtest.h>

#include <cmath>

namespace weir::plan::interval_test {

constexpr double kClose = 1e-9;

TEST(IntervalTest, YoungIsTheRootOfTwiceStallTimesMean) {
  EXPECT_NEAR(YoungInterval(2, 100), 20, 20 * kClose);
  EXPECT_NEAR(YoungInterval(0.5, 3600), 60, 60 * kClose);
}

TEST(IntervalTest, DalyIsTheSeriesBelowTwiceTheMeanAndTheMeanAbove) {
  // part = 0.01: 20 (1 + 0.1 / 3 + 0.01 / 9) - 2.
  EXPECT_NEAR(DalyInterval(2, 100), 20 * (1 + 0.1 / 3 + 0.01 / 9) - 2,
              20 * kClose);
  EXPECT_EQ(DalyInterval(200, 100), 100);
  EXPECT_EQ(DalyInterval(1000, 100), 100);
}

TEST(IntervalTest, AllAgreeIfCheckpointsTakeNoTime) {
  for (const double stall : {1e-3, 1e-6, 1e-9}) {
    const double mean = 1e4;
    const double young = YoungInterval(stall, mean);
    // The next term of the series is stall * 2 / 3.
    EXPECT_NEAR(DalyInterval(stall, mean), young, stall);
    EXPECT_NEAR(ExactInterval(stall, mean), young, stall);
  }
}

TEST(IntervalTest, TheExactOneSolvesItsEquation) {
  for (const double stall : {1e-6, 0.01, 1.0, 50.0, 100.0, 500.0}) {
    const double mean = 100;
    const double y = ExactInterval(stall, mean) / mean;
    EXPECT_GT(y, 0);
    EXPECT_LE(y, 1);
    EXPECT_NEAR(y + std::log1p(-y), -stall / mean,
                kClose * std::max(stall / mean, 1e-6))
        << stall;
  }
  EXPECT_NEAR(ExactInterval(5000, 100), 100, 100 * kClose);
}

TEST(IntervalTest, TheExactOneMinimizesTheExpectedTime) {
  for (const double stall : {0.1, 5.0, 80.0}) {
    const auto expected = [&](double interval) {
      return ExpectedSeconds(1e5, interval, stall, 30, 400);
    };
    const double best = ExactInterval(stall, 400);
    for (const double factor : {0.5, 0.9, 0.999, 1.001, 1.1, 2.0}) {
      EXPECT_GT(expected(best * factor), expected(best)) << factor;
    }
    // Daly's series is near the minimum, Young's less.
    EXPECT_LT(expected(DalyInterval(stall, 400)), expected(best) * 1.002);
    EXPECT_LE(expected(DalyInterval(stall, 400)),
              expected(YoungInterval(stall, 400)));
  }
}

TEST(IntervalTest, ExpectedTimeHasItsLimits) {
  // Rare failures: work and checkpoints, and per failure a restart and half a
  // cycle.
  const double mean = 1e9;
  const double work = 1e5, interval = 100, stall = 4, restart = 50;
  const double wall = work * 1.04;
  EXPECT_NEAR(ExpectedSeconds(work, interval, stall, restart, mean),
              wall * (1 + (restart + 52) / mean), wall * kClose);
  // Without restart and checkpoints: M (exp(w / M) - 1).
  EXPECT_NEAR(ExpectedSeconds(10, 10, 0, 0, 5), 5 * std::expm1(2.0),
              kClose * 30);
}

// Llama 3 405B: 419 unexpected interruptions in 54 days, more than 90 %
// effective.
TEST(IntervalTest, LlamaThreeLosesAtMostEighteenMinutesPerFailure) {
  const double mean = 54 * 86400.0 / 419;
  EXPECT_NEAR(mean / 3600, 3.09, 0.005);
  EXPECT_NEAR(LargestLossSeconds(0.9, mean) / 60, 18.56, 0.01);
}

}  // namespace weir::plan::interval_test
