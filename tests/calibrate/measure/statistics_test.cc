// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measure/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace weir::calibrate::statistics_test {

TEST(StatisticsTest, NumbersOneToElevenHaveKnownQuantiles) {
  const std::vector<double> samples = {11, 3, 5, 1, 9, 7, 2, 10, 4, 8, 6};
  const Quantiles q = SummarizeSamples(samples);
  EXPECT_EQ(q.num_samples(), 11);
  EXPECT_EQ(q.min(), 1);
  EXPECT_EQ(q.p10(), 2);
  EXPECT_EQ(q.p50(), 6);
  EXPECT_EQ(q.p90(), 10);
  EXPECT_NEAR(q.p99(), 10.9, 1e-12);
  EXPECT_EQ(q.mean(), 6);
  EXPECT_NEAR(q.deviation(), std::sqrt(11.0), 1e-12);
  EXPECT_EQ(q.median_absolute_deviation(), 3);
  // n = 11: the 2nd and the 10th, from tables of the sign test.
  EXPECT_NEAR(q.relative_ci(), (10.0 - 2.0) / 2 / 6, 1e-12);
}

TEST(StatisticsTest, OneSampleIsItsOwnEverything) {
  const Quantiles q = SummarizeSamples({5.0});
  EXPECT_EQ(q.p10(), 5);
  EXPECT_EQ(q.p99(), 5);
  EXPECT_EQ(q.deviation(), 0);
  EXPECT_EQ(q.relative_ci(), 0);
}

// Order statistics are counted from 1, as in tables of the sign test.
TEST(StatisticsTest, IntervalsAreThoseOfTheTables) {
  const int table[][3] = {{6, 1, 6},    {9, 2, 8},    {10, 2, 9},   {20, 6, 15},
                          {30, 10, 21}, {50, 18, 33}, {100, 40, 61}};
  for (const auto& [n, low, high] : table) {
    EXPECT_EQ(MedianIntervalOf(n).low + 1, low) << n;
    EXPECT_EQ(MedianIntervalOf(n).high + 1, high) << n;
  }
  for (int n = 1; n < 6; ++n) {
    EXPECT_EQ(MedianIntervalOf(n).low, 0);
    EXPECT_EQ(MedianIntervalOf(n).high, n - 1);
  }
}

// The exact coverage at n = 30 is 95.7 %. With 4000 series, its standard error
// is 0.32 %.
TEST(StatisticsTest, IntervalHoldsTheMedianAsOftenAsItSays) {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> skewed(0, 0.5);  // median 1
  const MedianInterval interval = MedianIntervalOf(30);
  int held = 0;
  constexpr int kSeries = 4000;
  for (int i = 0; i < kSeries; ++i) {
    std::vector<double> samples(30);
    for (double& x : samples) x = skewed(random);
    std::sort(samples.begin(), samples.end());
    held += samples[interval.low] <= 1 && 1 <= samples[interval.high];
  }
  EXPECT_NEAR(held / double{kSeries}, 0.957, 0.01);
}

TEST(StatisticsTest, OutliersLeaveTheMedianAlone) {
  std::vector<double> samples(40, 1.0);
  samples[3] = 100;
  samples[17] = 50;
  const Quantiles q = SummarizeSamples(samples);
  EXPECT_EQ(q.p50(), 1);
  EXPECT_EQ(q.relative_ci(), 0);
  EXPECT_EQ(q.median_absolute_deviation(), 0);
  EXPECT_GT(q.p99(), 50);
}

}  // namespace weir::calibrate::statistics_test
