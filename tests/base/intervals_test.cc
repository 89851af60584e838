// SPDX-License-Identifier: Apache-2.0
#include "base/intervals.h"

#include <gtest/gtest.h>

#include <random>

namespace weir::intervals_test {

TEST(IntervalsTest, TakesOutWhatIsCovered) {
  std::vector<Interval> gaps = {{0, 4}, {6, 8}};
  EXPECT_EQ(TakeOut({{7, 9}, {1, 2}, {1.5, 3}, {4, 6}}, &gaps), 3);
  ASSERT_EQ(gaps.size(), 3u);
  EXPECT_EQ(gaps[0].begin, 0);
  EXPECT_EQ(gaps[0].end, 1);
  EXPECT_EQ(gaps[1].begin, 3);
  EXPECT_EQ(gaps[1].end, 4);
  EXPECT_EQ(gaps[2].begin, 6);
  EXPECT_EQ(gaps[2].end, 7);
  EXPECT_EQ(LengthOf(gaps), 3);
}

TEST(IntervalsTest, BackwardIntervalsHaveNoLength) {
  std::vector<Interval> gaps = {{2, 1}};
  EXPECT_EQ(LengthOf(gaps), 0);
  EXPECT_EQ(TakeOut({{0, 3}}, &gaps), 0);
  EXPECT_TRUE(gaps.empty());
}

TEST(IntervalsTest, NothingIsLeftOfWhatIsCoveredInPieces) {
  std::mt19937 random(3);
  std::uniform_real_distribution<> draw(0, 0.1);
  for (int i = 0; i < 1000; ++i) {
    std::vector<Interval> pieces;
    double at = draw(random);
    for (int piece = 0; piece < 20; ++piece) {
      const double end = at + draw(random);
      pieces.push_back({at, end});
      at = end;
    }
    const Interval whole = {pieces.front().begin, pieces.back().end};
    std::vector<Interval> gaps = {whole};
    EXPECT_NEAR(TakeOut(pieces, &gaps), whole.length(), 1e-12);
    EXPECT_EQ(LengthOf(gaps), 0);
  }
}

}  // namespace weir::intervals_test
