// SPDX-License-Identifier: Apache-2.0
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedules/validate.h"
#include "schedules/walk.h"
#include "tests/schedules/test_schedules.h"

namespace weir::schedules::interleaved_zb_test {

using testing::HasSubstr;

// With equal F, I and W, every rank computes without a gap from its first
// forward on, and the last rank starts p - 1 later than the first.
TEST(InterleavedZeroBubbleTest, TakesAllPassesAndTheFill) {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    for (int rounds = 1; rounds <= 5; ++rounds) {
      for (int chunks = 1; chunks <= 4; ++chunks) {
        const Schedule schedule =
            Generated("InterleavedZeroBubble", {ranks, rounds * ranks, chunks});
        ASSERT_TRUE(ValidateSchedule(schedule).ok());
        const double passes = 3.0 * rounds * ranks * chunks;
        EXPECT_DOUBLE_EQ(TimedWalk(schedule, {}).makespan(), passes + ranks - 1)
            << ranks << " " << rounds << " " << chunks;
      }
    }
  }
}

TEST(InterleavedZeroBubbleTest, RoundsMustBeWhole) {
  // Two rounds of five, as PyTorch allows. Eleven are not two rounds.
  EXPECT_TRUE(GenerateSchedule("interleaved-zb", {4, 10, 2}).ok());
  EXPECT_THAT(GenerateSchedule("interleaved-zb", {4, 11, 2}).status().message(),
              HasSubstr("num_microbatches is 11, expected a multiple of the "
                        "number of rounds"));
}

}  // namespace weir::schedules::interleaved_zb_test
