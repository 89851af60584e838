// SPDX-License-Identifier: Apache-2.0
#include "base/error_statistics.h"

#include <gtest/gtest.h>

#include <vector>

namespace weir::error_statistics_test {

TEST(ErrorStatisticsTest, FiveErrorsByHand) {
  // Errors of +10 %, -20 %, 0, +30 %, -40 %.
  const std::vector<double> measured = {10, 10, 10, 10, 10};
  const std::vector<double> predicted = {11, 8, 10, 13, 6};
  const ErrorStatistics statistics = SummarizeErrors(predicted, measured);
  EXPECT_EQ(statistics.num_rows, 5);
  EXPECT_NEAR(statistics.mean_absolute, 0.2, 1e-12);
  EXPECT_NEAR(statistics.bias, -0.04, 1e-12);
  EXPECT_NEAR(statistics.median_absolute, 0.2, 1e-12);
  // Interpolates between the fourth (30 %) and fifth (40 %) error, at 0.9 x 4 =
  // 3.6 from the first.
  EXPECT_NEAR(statistics.percentile_90, 0.36, 1e-12);
  EXPECT_NEAR(statistics.worst, -0.4, 1e-12);
  EXPECT_EQ(statistics.worst_row, 4);
}

TEST(ErrorStatisticsTest, NoRowsHaveNoErrors) {
  const ErrorStatistics statistics = SummarizeErrors({}, {});
  EXPECT_EQ(statistics.num_rows, 0);
  EXPECT_EQ(statistics.worst_row, -1);
}

}  // namespace weir::error_statistics_test
