// SPDX-License-Identifier: Apache-2.0
#include "base/problems.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace weir::problems_test {

using testing::EndsWith;

TEST(ProblemsTest, MillionsAreTheFirstFifty) {
  Problems problems("f");
  for (int i = 0; i < 1'000'000; ++i) problems.Add("x", "is wrong");
  const std::string text(problems.ToStatus().message());
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 50);
  EXPECT_THAT(text, EndsWith("\nf: further problems are not shown"));
}

}  // namespace weir::problems_test
