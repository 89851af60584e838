// SPDX-License-Identifier: Apache-2.0
#include "schedules/comm/streams.h"

#include "gtest/gtest.h"

namespace weir::schedules::streams_test {

using Event = Streams::Event;

TEST(StreamsTest, ItemsRunInOrderAndTakeTheirTime) {
  Streams streams;
  streams.BeginStream();
  const int32_t a = streams.AddItem(2);
  const int32_t b = streams.AddItem(1);
  streams.BeginStream();
  const int32_t c = streams.AddItem(5);
  streams.AddPostDependency(b, c, Event::kDone);
  const Streams::Outcome outcome = streams.Run(/*clock=*/true);
  EXPECT_FALSE(outcome.deadlocked);
  EXPECT_EQ(outcome.done_at[a], 2);
  EXPECT_EQ(outcome.posted_at[b], 5);
  EXPECT_EQ(outcome.end, 6);
}

TEST(StreamsTest, TheClockCountsUnitsPastTwoToThe24) {
  Streams streams;
  streams.BeginStream();
  streams.AddItem(1 << 24);
  streams.AddItem(1);
  streams.AddItem(1);
  EXPECT_EQ(streams.Run(/*clock=*/true).end, (1 << 24) + 2);
}

TEST(StreamsTest, TwoMeetWhenBothHaveBegun) {
  Streams streams;
  streams.BeginStream();
  streams.AddItem(3);
  const int32_t send = streams.AddItem();
  streams.BeginStream();
  const int32_t receive = streams.AddItem();
  streams.AddEndDependency(send, receive, Event::kPosted);
  streams.AddEndDependency(receive, send, Event::kPosted);
  const Streams::Outcome outcome = streams.Run(/*clock=*/true);
  EXPECT_EQ(outcome.posted_at[receive], 0);
  EXPECT_EQ(outcome.done_at[receive], 3);
}

TEST(StreamsTest, TheShortestCycleIsFound) {
  Streams streams;
  for (int i = 0; i < 5; ++i) {
    streams.BeginStream();
    streams.AddItem();
  }
  // 0 -> 1 -> 2 -> 0, and 3 -> 4 -> 3; 0 also waits for 3.
  streams.AddPostDependency(0, 1, Event::kDone);
  streams.AddPostDependency(0, 3, Event::kDone);
  streams.AddPostDependency(1, 2, Event::kDone);
  streams.AddPostDependency(2, 0, Event::kDone);
  streams.AddPostDependency(3, 4, Event::kDone);
  streams.AddPostDependency(4, 3, Event::kDone);
  const Streams::Outcome outcome = streams.Run();
  ASSERT_TRUE(outcome.deadlocked);
  const std::vector<Streams::Wait> cycle = streams.ShortestCycle(outcome);
  ASSERT_EQ(cycle.size(), 2);
  EXPECT_EQ(cycle[0].item, 3);
  EXPECT_EQ(cycle[1].item, 4);
}

TEST(StreamsTest, AnItemCanWaitForItsOwnStream) {
  Streams streams;
  streams.BeginStream();
  streams.AddItem();
  streams.AddItem();
  streams.AddPostDependency(0, 1, Event::kDone);
  const Streams::Outcome outcome = streams.Run();
  ASSERT_TRUE(outcome.deadlocked);
  EXPECT_EQ(streams.ShortestCycle(outcome).size(), 1);
}

}  // namespace weir::schedules::streams_test
