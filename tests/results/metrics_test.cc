// SPDX-License-Identifier: Apache-2.0
#include "results/metrics.h"

#include <gtest/gtest.h>

#include <vector>

namespace weir::results::metrics_test {

TEST(MetricsTest, IdleRatioOfAPipelineIsItsClosedForm) {
  // GPipe and 1F1B: every rank is busy for m (F + B) of (m + p - 1) (F + B).
  for (int p : {1, 2, 4, 64}) {
    for (int m : {1, 8, 1000}) {
      const std::vector<double> idle(p, (p - 1) * 3.0);
      const double expected = double(p - 1) / (m + p - 1);
      EXPECT_NEAR(IdleRatio(idle, (m + p - 1) * 3.0), expected, 1e-9 * expected)
          << p << " ranks, " << m << " microbatches";
    }
  }
}

TEST(MetricsTest, IdleRatioIsOverAllRanks) {
  const std::vector<double> idle = {0, 3, 3};
  EXPECT_DOUBLE_EQ(IdleRatio(idle, 4), 6.0 / 12);
}

TEST(MetricsTest, EmptyWindowsGiveZero) {
  const std::vector<double> idle = {0, 0};
  EXPECT_EQ(IdleRatio(idle, 0), 0);
  EXPECT_EQ(IdleRatio({}, 1), 0);
  EXPECT_EQ(ExposedCommunicationRatio({}, 1), 0);
  EXPECT_EQ(SamplesPerSecond(1, 0), 0);
  EXPECT_EQ(TokensPerSecond(1, 1, 0), 0);
  EXPECT_EQ(ModelFlopsUtilization(1, 0, 1, 1), 0);
}

TEST(MetricsTest, ExposedCommunicationIsTheMeanOverGpus) {
  const std::vector<double> exposed = {0, 1, 2, 1};
  EXPECT_DOUBLE_EQ(ExposedCommunicationRatio(exposed, 10), 0.1);
}

TEST(MetricsTest, UtilizationCountsEveryGpu) {
  // Half of the FLOP that 4 GPUs with 100 TFLOP/s can perform in 2 s.
  EXPECT_DOUBLE_EQ(ModelFlopsUtilization(400e12, 2, 4, 100e12), 0.5);
}

TEST(MetricsTest, ThroughputIsPerBatch) {
  EXPECT_DOUBLE_EQ(SamplesPerSecond(512, 8), 64);
  EXPECT_DOUBLE_EQ(TokensPerSecond(512, 2048, 8), 64 * 2048);
}

}  // namespace weir::results::metrics_test
