// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/pool_sizes.h"

#include <gmock/gmock.h>

namespace weir::calibrate::pool_sizes_test {

using testing::ElementsAre;

TEST(PoolSizesTest, PoolsAreInProportionToPredictedPeaks) {
  EXPECT_THAT(DividePoolBytes({30.0, 10.0}, 2, 1000), ElementsAre(750, 250));
  // No plan for these ranks: equal shares.
  EXPECT_THAT(DividePoolBytes({}, 4, 1000), ElementsAre(250, 250, 250, 250));
  EXPECT_THAT(DividePoolBytes({30.0, 10.0}, 1, 1000), ElementsAre(1000));
  EXPECT_THAT(DividePoolBytes({0.0, 0.0}, 2, 1000), ElementsAre(500, 500));
}

TEST(PoolSizesTest, AShareHoldsThePeakAndTheMarginIfTheSumFits) {
  const std::vector<double> peaks = {11.8e9, 10.95e9, 15.7e9, 4e9};
  const double needed = NeededPoolBytes(peaks);
  EXPECT_NEAR(needed, 1.05 * 42.45e9, 1);
  const std::vector<int64_t> shares = DividePoolBytes(peaks, 4, needed);
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_NEAR(static_cast<double>(shares[rank]), 1.05 * peaks[rank], 2);
  }
  EXPECT_EQ(NeededPoolBytes({}), 0);
}

}  // namespace weir::calibrate::pool_sizes_test
