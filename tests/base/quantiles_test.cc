// SPDX-License-Identifier: Apache-2.0
#include "base/quantiles.h"

#include <gtest/gtest.h>

#include "base/split_mix.h"

namespace weir::quantiles_test {

TEST(QuantilesTest, TheMedianOfAnEvenNumberIsBetweenTheMiddleTwo) {
  EXPECT_EQ(Median({3}), 3);
  EXPECT_EQ(Median({4, 1}), 2.5);
  EXPECT_EQ(Median({5, 1, 2}), 2);
  EXPECT_EQ(Median({9, 1, 3, 2}), 2.5);
}

TEST(QuantilesTest, QuantilesAreInterpolated) {
  EXPECT_EQ(QuantileOfSorted({1, 2, 4}, 0), 1);
  EXPECT_EQ(QuantileOfSorted({1, 2, 4}, 0.25), 1.5);
  EXPECT_EQ(QuantileOfSorted({1, 2, 4}, 0.75), 3);
  EXPECT_EQ(QuantileOfSorted({1, 2, 4}, 1), 4);
}

// The first outputs of the authors' program for the seed 1234567.
TEST(SplitMixTest, OutputsAreThePublishedOnes) {
  uint64_t state = 1234567;
  EXPECT_EQ(SplitMix(state += kSplitMixStep), 6457827717110365317u);
  EXPECT_EQ(SplitMix(state += kSplitMixStep), 3203168211198807973u);
}

}  // namespace weir::quantiles_test
