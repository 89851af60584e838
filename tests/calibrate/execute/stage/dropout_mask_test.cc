// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/stage/dropout_mask.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

namespace weir::calibrate::dropout_mask_test {

using ::testing::ElementsAre;

// kat_vectors of Random123, the paper's own code: philox4x32, 10 rounds.
TEST(DropoutMaskTest, PhiloxGivesTheReferenceVectors) {
  EXPECT_THAT(Philox({{0, 0, 0, 0}}, 0).words,
              ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  EXPECT_THAT(Philox({{~0u, ~0u, ~0u, ~0u}}, ~uint64_t{0}).words,
              ElementsAre(0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd));
  EXPECT_THAT(Philox({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
                     uint64_t{0x299f31d0} << 32 | 0xa4093822)
                  .words,
              ElementsAre(0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
}

TEST(DropoutMaskTest, DropsTheShareAskedForWithinFourDeviations) {
  constexpr int kNum = 1 << 20;
  for (float probability : {0.1F, 0.5F}) {
    int dropped = 0;
    for (int i = 0; i < kNum; ++i) dropped += !IsKept(7, probability, i);
    const double deviation =
        std::sqrt(kNum * probability * (1.0 - probability));
    EXPECT_NEAR(dropped, kNum * probability, 4 * deviation);
  }
}

TEST(DropoutMaskTest, KeepsAllAtZeroAndNoneAtOne) {
  for (int64_t i = 0; i < 1000; ++i) {
    EXPECT_TRUE(IsKept(3, 0, i));
    EXPECT_FALSE(IsKept(3, 1, i));
  }
}

TEST(DropoutMaskTest, EightAtOnceAreTheSameEight) {
  for (uint64_t group : {uint64_t{0}, uint64_t{5}, uint64_t{1} << 40}) {
    const uint32_t kept = KeptOfEight(11, DropThreshold(0.3F), group);
    for (int j = 0; j < 8; ++j) {
      EXPECT_EQ(kept >> j & 1, IsKept(11, 0.3F, 8 * group + j));
    }
  }
}

}  // namespace weir::calibrate::dropout_mask_test
