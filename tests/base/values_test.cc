// SPDX-License-Identifier: Apache-2.0
#include "base/values.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "base/exit_code.h"

namespace weir::values_test {

TEST(ValuesTest, CountsAreWholeAndAboveZero) {
  EXPECT_EQ(*ParseCount("1"), 1u);
  EXPECT_EQ(*ParseCount("2147483647"), 2147483647u);
  for (const char* text : {"", "0", "-1", "1.5", "2147483648", "0x10", "1 2"}) {
    EXPECT_FALSE(ParseCount(text).ok()) << text;
  }
}

TEST(ValuesTest, ListsAreSplitAtCommas) {
  EXPECT_EQ(*ParseCounts("0,3,1", 0), (std::vector<uint32_t>{0, 3, 1}));
  EXPECT_FALSE(ParseCounts("0,,1", 0).ok());
  EXPECT_FALSE(ParseCounts("0,1", 1).ok());
}

TEST(ValuesTest, PositiveNumbersAreFinite) {
  EXPECT_EQ(*ParsePositive("2.5"), 2.5);
  for (const char* text : {"", "0", "-1", "nan", "inf", "1e999", "x"}) {
    EXPECT_FALSE(ParsePositive(text).ok()) << text;
  }
}

TEST(ValuesTest, BytesHaveDecimalAndBinaryUnits) {
  EXPECT_EQ(*ParseBytes("80GiB"), 80 * 1073741824.0);
  EXPECT_EQ(*ParseBytes("80 gb"), 80e9);
  EXPECT_EQ(*ParseBytes("1.5e9"), 1.5e9);
  for (const char* text : {"", "0", "-1GB", "80 apples", "GiB"}) {
    EXPECT_FALSE(ParseBytes(text).ok()) << text;
  }
}

TEST(ValuesTest, TimeLimitsAreWhatClocksCount) {
  EXPECT_EQ(*ParseTimeLimit("1e9"), 1e9);
  EXPECT_EQ(*ParseTimeLimit("0.001"), 0.001);
  for (const char* text : {"1e10", "1e308", "1e999", "inf", "nan", "-1", "0",
                           "0.0001", "", "x", "5s"}) {
    EXPECT_FALSE(ParseTimeLimit(text).ok()) << text;
  }
  EXPECT_EQ(ParseTimeLimit("1e10").status().message(),
            "is 1e10, expected seconds from 0.001 to 1e+09");
}

TEST(ValuesTest, ChoicesDisregardCase) {
  const Choices choices = {{"none", 1}, {"full", 2}};
  EXPECT_EQ(*ParseChoice("FULL", choices), 2);
  EXPECT_EQ(ParseChoice("ful", choices).status().message(),
            "is ful, expected none or full");
}

TEST(ExitCodeTest, FollowsTheStatus) {
  EXPECT_EQ(ExitCodeOf(absl::OkStatus()), 0);
  EXPECT_EQ(ExitCodeOf(absl::InvalidArgumentError("x")), 2);
  EXPECT_EQ(ExitCodeOf(absl::NotFoundError("x")), 2);
  EXPECT_EQ(ExitCodeOf(absl::OutOfRangeError("x")), 2);
  EXPECT_EQ(ExitCodeOf(absl::FailedPreconditionError("x")), 2);
  EXPECT_EQ(ExitCodeOf(absl::FailedPreconditionError("deadlock: x")), 1);
  EXPECT_EQ(ExitCodeOf(absl::UnavailableError("x")), 3);
  EXPECT_EQ(ExitCodeOf(absl::InternalError("x")), 70);
  EXPECT_EQ(ExitCodeOf(absl::CancelledError("x")), 130);
}

}  // namespace weir::values_test
