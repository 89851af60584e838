// SPDX-License-Identifier: Apache-2.0
// Tests the removal of periods from schedules and their restoration.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "schedules/registry.h"
#include "schedules/validate.h"
#include "sim/fast/joined_batches.h"
#include "sim/fast/steady.h"

namespace weir::sim::shorten_test {

TEST(ShortenTest, PutBackIsTheSame) {
  std::mt19937 random(1);
  const auto draw = [&](int low, int high) {
    return std::uniform_int_distribution<>(low, high)(random);
  };
  for (const schedules::ScheduleKind& kind : schedules::AllScheduleKinds()) {
    if (!kind.flush) continue;
    int num_short = 0, num_all = 0;
    for (int k = 0; k < 400 && num_all < 30; ++k) {
      schedules::ScheduleSpec spec;
      spec.num_ranks = draw(1, 6);
      spec.num_chunks = draw(1, 3);
      spec.num_microbatches = draw(60, 140);
      if (!kind.check(spec).ok()) continue;
      ++num_all;
      const schedules::Schedule schedule = kind.generate(spec);
      const auto shortened = ShortenSchedule(schedule);
      if (!shortened.has_value()) {
        continue;
      }
      ++num_short;
      const std::string label =
          absl::StrCat(kind.name, " p ", spec.num_ranks, " v ", spec.num_chunks,
                       " m ", spec.num_microbatches);
      const absl::Status valid =
          schedules::ValidateSchedule(shortened->schedule);
      ASSERT_TRUE(valid.ok()) << label << valid;
      const schedules::Schedule restored = RestoreSchedule(*shortened);
      ASSERT_EQ(restored.rank_actions, schedule.rank_actions) << label;
      ASSERT_EQ(restored.num_microbatches, schedule.num_microbatches);
      ASSERT_EQ(restored.weights, schedule.weights) << label;
    }
    EXPECT_GE(num_short, 0.7 * num_all) << kind.name;
  }
}

// More microbatches in all batches have the order of fewer with more periods.
TEST(ShortenTest, SchedulesThatRepeatMicrobatchesAreThoseOfFewer) {
  std::mt19937 random(3);
  const auto draw = [&](int low, int high) {
    return std::uniform_int_distribution<>(low, high)(random);
  };
  int num_kinds = 0;
  for (const schedules::ScheduleKind& kind : schedules::AllScheduleKinds()) {
    if (!kind.repeats_microbatches) continue;
    ++num_kinds;
    for (int k = 0; k < 40; ++k) {
      schedules::ScheduleSpec spec;
      spec.num_ranks = draw(1, 6);
      spec.num_microbatches = draw(8, 40);
      spec.num_batches = draw(8, 12);
      SCOPED_TRACE(absl::StrCat(kind.name, " p ", spec.num_ranks, " m ",
                                spec.num_microbatches));
      ASSERT_TRUE(kind.check(spec).ok());
      schedules::Schedule all = kind.generate(spec);
      JoinBatches(&all);
      const int left_out =
          MicrobatchesNotGenerated(all.num_microbatches, spec.num_ranks);
      if (left_out == 0) continue;
      spec.num_microbatches = all.num_microbatches - left_out;
      spec.num_batches = 1;
      schedules::Schedule fewer = kind.generate(spec);
      JoinBatches(&fewer);
      auto shortened = ShortenSchedule(fewer);
      ASSERT_TRUE(shortened.has_value());
      ASSERT_EQ(left_out % shortened->period_microbatches, 0);
      shortened->num_periods_left_out +=
          left_out / shortened->period_microbatches;
      const schedules::Schedule restored = RestoreSchedule(*shortened);
      EXPECT_EQ(restored.rank_actions, all.rank_actions);
      EXPECT_EQ(restored.num_microbatches, all.num_microbatches);
    }
  }
  EXPECT_GE(num_kinds, 4);
}

TEST(ShortenTest, WithoutPeriodsNothingIsCut) {
  std::mt19937 random(2);
  for (const char* name : {"1f1b", "gpipe"}) {
    schedules::Schedule schedule = *schedules::GenerateSchedule(name, {4, 64});
    ASSERT_TRUE(ShortenSchedule(schedule).has_value());
    // Swaps some neighboring passes of one rank.
    std::vector<schedules::Action>& actions = schedule.rank_actions[2];
    for (int k = 0; k < 40; ++k) {
      const size_t at =
          std::uniform_int_distribution<size_t>(0, actions.size() - 2)(random);
      std::swap(actions[at], actions[at + 1]);
    }
    EXPECT_FALSE(ShortenSchedule(schedule).has_value()) << name;
  }
}

TEST(ShortenTest, TooFewMicrobatchesDoNotPay) {
  EXPECT_FALSE(ShortenSchedule(*schedules::GenerateSchedule("1f1b", {8, 12}))
                   .has_value());
}

TEST(ShortenTest, AsManyPeriodsAreKeptAsAsked) {
  const schedules::Schedule schedule =
      *schedules::GenerateSchedule("1f1b", {4, 100});
  const auto shortened =
      ShortenSchedule(schedule, {.num_periods_kept = 20, .multiple = 7});
  ASSERT_TRUE(shortened.has_value());
  EXPECT_GE(shortened->num_periods_kept, 20);
  EXPECT_LT(shortened->num_periods_kept, 27);
  EXPECT_EQ(shortened->num_periods_left_out % 7, 0);
}

// A shortened schedule may keep most of millions of actions, so it reserves no
// additional memory.
TEST(ShortenTest, NoMoreMemoryIsTakenThanIsKept) {
  const auto shortened =
      ShortenSchedule(*schedules::GenerateSchedule("1f1b", {8, 100}));
  ASSERT_TRUE(shortened.has_value());
  for (const auto& actions : shortened->schedule.rank_actions) {
    EXPECT_EQ(actions.capacity(), actions.size());
  }
}

// Backwards run in the order of the forwards or in reverse order.
TEST(ShortenTest, StretchesMayDescend) {
  const auto shortened =
      ShortenSchedule(*schedules::GenerateSchedule("gpipe", {4, 64}));
  ASSERT_TRUE(shortened.has_value());
  ASSERT_EQ(shortened->stretches[1].size(), 2);
  EXPECT_FALSE(shortened->stretches[1][0].descending);
  EXPECT_TRUE(shortened->stretches[1][1].descending);
}

}  // namespace weir::sim::shorten_test
