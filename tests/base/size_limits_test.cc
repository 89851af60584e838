// SPDX-License-Identifier: Apache-2.0
#include "base/size_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>

namespace weir::size_limits_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    setenv(name, value, /*overwrite=*/1);
  }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

TEST(SizeLimitsTest, AcceptsAtTheLimitAndRefusesAbove) {
  const ScopedSizeLimits limits({1000, 10});
  EXPECT_TRUE(CheckSize("x", "2 things", {1000, 10}, "fewer").ok());
  EXPECT_FALSE(CheckSize("x", "2 things", {1001, 10}, "fewer").ok());
  EXPECT_FALSE(CheckSize("x", "2 things", {1000, 10.1}, "fewer").ok());
}

TEST(SizeLimitsTest, SaysWhatWasCountedEstimatedAllowedAndWhatToChange) {
  const ScopedSizeLimits limits({4.0 * (1 << 30), 60});
  const absl::Status status =
      CheckSize("file.textproto", "1e+09 tasks", {16.0 * (1 << 30), 3 * 3600.0},
                "fewer microbatches");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "file.textproto: is too large: 1e+09 tasks need about 16.0 GiB and "
            "3 hours, expected at most 4.00 GiB and 60 s: fewer "
            "microbatches, or raise WEIR_MAX_BYTES or WEIR_MAX_SECONDS");
}

TEST(SizeLimitsTest, RefusesWhatCannotBeCounted) {
  const ScopedSizeLimits limits({1e30, 1e30});
  EXPECT_FALSE(CheckSize("x", "all", {NAN, 1}, "fewer").ok());
  EXPECT_FALSE(CheckSize("x", "all",
                         {1, std::numeric_limits<double>::infinity()}, "fewer")
                   .ok());
}

TEST(SizeLimitsTest, AddsWhatIsThereTogether) {
  const SizeEstimate sum = SizeEstimate{1, 2} + SizeEstimate{10, 20};
  EXPECT_EQ(sum.bytes, 11);
  EXPECT_EQ(sum.seconds, 22);
}

TEST(SizeLimitsTest, IsSetByTheEnvironment) {
  const Variable bytes(kMaxBytesVariable, "1e6");
  const Variable seconds(kMaxSecondsVariable, "5");
  const auto limits = CurrentSizeLimits();
  ASSERT_TRUE(limits.ok());
  EXPECT_EQ(limits->bytes, 1e6);
  EXPECT_EQ(limits->seconds, 5);
  EXPECT_TRUE(CheckSize("x", "y", {1e6, 5}, "z").ok());
  EXPECT_FALSE(CheckSize("x", "y", {2e6, 5}, "z").ok());
}

TEST(SizeLimitsTest, RefusesAVariableThatIsNoNumber) {
  const Variable bytes(kMaxBytesVariable, "much");
  EXPECT_THAT(CurrentSizeLimits().status().message(),
              AllOf(HasSubstr("WEIR_MAX_BYTES is \"much\""),
                    HasSubstr("expected a number above 0")));
  EXPECT_FALSE(CheckSize("x", "y", {1, 1}, "z").ok());
}

TEST(SizeLimitsTest, OfTheMachineAreBelowTheCeilings) {
  const auto limits = CurrentSizeLimits();
  ASSERT_TRUE(limits.ok());
  EXPECT_GE(limits->bytes, kAlwaysFitsBytes);
  EXPECT_LE(limits->bytes, kMaxRequestBytes);
  EXPECT_EQ(limits->seconds, kMaxRequestSeconds);
  EXPECT_FALSE(CheckSize("x", "y", {2 * kMaxRequestBytes, 1}, "z").ok());
  EXPECT_TRUE(CheckSize("x", "y", {kAlwaysFitsBytes, 1}, "z").ok());
}

}  // namespace weir::size_limits_test
