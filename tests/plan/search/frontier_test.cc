// SPDX-License-Identifier: Apache-2.0
#include "plan/search/frontier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace weir::plan::frontier_test {

using State = OpenEntry::State;

// Returns two layouts with two schedules each.
Space TwoLayouts() {
  Space space;
  space.schedules.resize(3);
  for (const int pipeline : {1, 2}) {
    Shape& shape = space.shapes.emplace_back();
    shape.pipeline = pipeline;
    shape.data = 2 / pipeline;
    for (const char* name : {"1f1b", "gpipe"}) {
      space.schedules[pipeline].emplace_back().name = name;
    }
  }
  return space;
}

OpenEntry Entry(double bound, int shape, int schedule,
                State state = State::kBounded) {
  OpenEntry entry;
  entry.key = {bound, 0};
  entry.shape = shape;
  entry.schedule = schedule;
  entry.state = state;
  return entry;
}

bool NoneIsBeaten(const OpenEntry& /*entry*/) { return false; }

std::vector<double> Keys(const std::vector<OpenEntry>& entries) {
  std::vector<double> keys;
  for (const OpenEntry& entry : entries) keys.push_back(entry.key.first);
  return keys;
}

TEST(FrontierTest, NoFamilyHasARoundToItselfWhileOthersHaveSome) {
  const Space space = TwoLayouts();
  Frontier frontier(space, false);
  for (int k = 0; k < 100; ++k) frontier.Insert(Entry(1 + 0.001 * k, 0, 0));
  for (int k = 0; k < 100; ++k) frontier.Insert(Entry(2 + 0.001 * k, 1, 1));
  const auto taken = frontier.NextRound(128, 16, false, NoneIsBeaten);
  ASSERT_EQ(taken.size(), 16u);
  EXPECT_EQ(std::count_if(taken.begin(), taken.end(),
                          [](const OpenEntry& one) { return one.shape == 1; }),
            8);
  // These are the best entries of each family.
  EXPECT_EQ(std::max_element(taken.begin(), taken.end())->key.first,
            2 + 0.001 * 7);
}

TEST(FrontierTest, WhatWasEstimatedCorrectsTheBoundsOfItsFamilyAndLayout) {
  const Space space = TwoLayouts();
  Frontier frontier(space, false);
  frontier.RecordKey(Entry(1, 0, 0), {3, 0});
  frontier.RecordKey(Entry(1, 0, 0), {4, 0});  // the smallest ratio counts
  // The estimates are 1.0 x 3 and, for the same layout, 1.1 x 3. The bound of
  // the other layout is not corrected.
  frontier.Insert(Entry(1, 0, 0));
  frontier.Insert(Entry(1.1, 0, 1));
  frontier.Insert(Entry(2, 1, 0));
  EXPECT_EQ(Keys(frontier.NextRound(128, 3, false, NoneIsBeaten)),
            (std::vector<double>{2, 1, 1.1}));
}

TEST(FrontierTest, CountsAndBoundsWhatIsOpen) {
  const Space space = TwoLayouts();
  Frontier frontier(space, false);
  EXPECT_EQ(frontier.LeastKey(), std::numeric_limits<double>::infinity());
  frontier.Insert(Entry(3, 0, 0));
  frontier.Insert(Entry(2, 0, -1, State::kShape));
  frontier.Insert(Entry(4, 1, 1));
  frontier.Insert(Entry(5, 1, 0, State::kCandidate));
  EXPECT_EQ(frontier.LeastKey(), 2);
  EXPECT_EQ(frontier.CountBelow({3.5, 0}), (std::array<uint64_t, 3>{1, 0, 1}));
  EXPECT_EQ(frontier.CountBelow({9, 0}), (std::array<uint64_t, 3>{1, 1, 2}));
}

TEST(FrontierTest, WhatIsBelowTheBestEstimateIsBoundedFirst) {
  const Space space = TwoLayouts();
  Frontier frontier(space, false);
  frontier.RecordKey(Entry(1, 0, 0), {2, 0});
  frontier.Insert(Entry(1, 0, 0));  // estimated at 2
  frontier.Insert(Entry(1.5, 0, -1, State::kShape));
  frontier.Insert(Entry(1.9, 1, 0, State::kCandidate));
  frontier.Insert(Entry(2.1, 1, 1, State::kCandidate));
  EXPECT_EQ(Keys(frontier.NextRound(128, 16, false, NoneIsBeaten)),
            (std::vector<double>{1.5, 1.9}));
  EXPECT_EQ(Keys(frontier.NextRound(128, 16, false, NoneIsBeaten)),
            (std::vector<double>{1}));
  EXPECT_EQ(Keys(frontier.NextRound(128, 16, false, NoneIsBeaten)),
            (std::vector<double>{2.1}));
}

TEST(FrontierTest, SeedsAreRankedFirstAndAlone) {
  const Space space = TwoLayouts();
  Frontier frontier(space, false);
  frontier.Insert(Entry(1, 0, 0));
  for (int seed = 0; seed < 5; ++seed) {
    OpenEntry entry = Entry(9, seed < 3 ? -1 : 0, seed < 3 ? 0 : seed - 3);
    entry.seed = seed;
    frontier.Insert(entry);
  }
  EXPECT_EQ(Keys(frontier.NextRound(128, 6, false, NoneIsBeaten)),
            (std::vector<double>{9, 9, 9, 9, 9}));
  EXPECT_EQ(Keys(frontier.NextRound(128, 6, false, NoneIsBeaten)),
            (std::vector<double>{1}));
}

TEST(FrontierTest, WhatIsBeatenIsLeftUntilItIsNot) {
  const Space space = TwoLayouts();
  for (const bool each_may_lead : {false, true}) {
    Frontier frontier(space, each_may_lead);
    frontier.Insert(Entry(1, 0, 0));
    frontier.Insert(Entry(2, 0, 0));
    frontier.Insert(Entry(3, 1, 0, State::kCandidate));
    const auto is_beaten = [](const OpenEntry& entry) {
      return entry.key.first > 1.5;
    };
    EXPECT_EQ(Keys(frontier.NextRound(8, 8, false, is_beaten)),
              (std::vector<double>{1}));
    EXPECT_TRUE(frontier.NextRound(8, 8, false, is_beaten).empty());
    frontier.Reopen();
    int count = 0;
    frontier.ForEach([&](const OpenEntry& /*entry*/) { ++count; });
    EXPECT_EQ(count, 2);
    EXPECT_EQ(Keys(frontier.NextRound(8, 8, false, NoneIsBeaten)),
              (std::vector<double>{2}));
  }
}

TEST(FrontierTest, RunsMayComeBeforeEntriesWithLowerBounds) {
  const Space space = TwoLayouts();
  Frontier frontier(space, false);
  frontier.Insert(Entry(2, 0, 0));
  OpenEntry open = Entry(1, 1, 1);
  open.state = OpenEntry::State::kCandidate;
  frontier.Insert(open);
  EXPECT_EQ(Keys(frontier.NextRound(8, 8, true, NoneIsBeaten)),
            (std::vector<double>{2}));
  // Without runs, entries are bounded.
  EXPECT_EQ(Keys(frontier.NextRound(8, 8, true, NoneIsBeaten)),
            (std::vector<double>{1}));
}

}  // namespace weir::plan::frontier_test
