// SPDX-License-Identifier: Apache-2.0
#include "base/spelling.h"

#include <gtest/gtest.h>

namespace weir::spelling_test {

TEST(SpellingTest, DistanceCountsLettersAndSwaps) {
  EXPECT_EQ(EditDistance("", "abc"), 3);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3);
  EXPECT_EQ(EditDistance("2wb", "2bw"), 1);
  EXPECT_EQ(EditDistance("Pipe_Dream", "pipe-dream"), 0);
}

TEST(SpellingTest, NearWordsAreSuggestedAndFarOnesAreNot) {
  EXPECT_EQ(DidYouMean("simulte", {"compare", "simulate"}),
            "; did you mean simulate?");
  EXPECT_EQ(DidYouMean("shwo", {"list", "show"}), "; did you mean show?");
  EXPECT_EQ(DidYouMean("xyzzy", {"compare", "simulate"}), "");
  EXPECT_EQ(DidYouMean("nope", {"gpipe"}), "");
  EXPECT_EQ(DidYouMean("xpd", {"vpp"}), "");
  EXPECT_EQ(DidYouMean("--xpd", {"--vpp"}), "");
  EXPECT_EQ(DidYouMean("--vp", {"--vpp"}), "; did you mean --vpp?");
  EXPECT_EQ(DidYouMean("x", {"y"}), "");
}

TEST(SpellingTest, TheNearestOfSeveralIsSuggested) {
  EXPECT_EQ(NearestWord("gpt2-medum", {"gpt2-large", "gpt2-medium"}),
            "gpt2-medium");
}

}  // namespace weir::spelling_test
