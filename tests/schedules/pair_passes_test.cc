// SPDX-License-Identifier: Apache-2.0
#include "schedules/pair_passes.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "gtest/gtest.h"
#include "schedules/registry.h"
#include "schedules/validate.h"

namespace weir::schedules::pair_passes_test {

Schedule Generate(absl::string_view name, int num_ranks, int num_chunks,
                  int num_microbatches) {
  ScheduleSpec spec;
  spec.num_ranks = num_ranks;
  spec.num_microbatches = num_microbatches;
  spec.num_chunks = num_chunks;
  auto schedule = GenerateSchedule(name, spec);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return schedule.ok() ? *schedule : Schedule();
}

int NumPairs(const Schedule& schedule, int rank) {
  return static_cast<int>(std::ranges::count_if(
      schedule.rank_actions[rank],
      [](const Action& action) { return action.overlaps_next; }));
}

// After w = p - r - 1 warm-up forwards and one more, every backward but the
// last w + 1 has a forward after it.
TEST(PairPassesTest, PairsTheSteadyStateOfOneForwardOneBackward) {
  const Schedule before = Generate("1f1b", 4, 1, 8);
  Schedule schedule = before;
  PairBackwardsWithForwards(&schedule);
  EXPECT_TRUE(ValidateSchedule(schedule).ok()) << ValidateSchedule(schedule);
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(NumPairs(schedule, rank), 8 - (4 - rank - 1) - 1);
    const auto& actions = schedule.rank_actions[rank];
    ASSERT_EQ(actions.size(), before.rank_actions[rank].size());
    for (size_t i = 0; i < actions.size(); ++i) {
      Action action = actions[i];
      action.overlaps_next = false;
      EXPECT_EQ(action, before.rank_actions[rank][i]);  // the same order
      if (!actions[i].overlaps_next) continue;
      EXPECT_TRUE(MakesInputGradient(actions[i].op));
      EXPECT_EQ(actions[i + 1].op, Op::kForward);
      EXPECT_EQ(actions[i + 1].microbatch,
                actions[i].microbatch + (4 - rank - 1) + 1);
    }
  }
}

TEST(PairPassesTest, PairedSchedulesCanRun) {
  for (const auto& [name, chunks] : {std::pair("1f1b", 1),
                                     {"interleaved-1f1b", 2},
                                     {"interleaved-1f1b", 4},
                                     {"zb-h1", 1},
                                     {"gpipe", 1}}) {
    for (const int ranks : {1, 2, 4}) {
      for (const int microbatches : {4, 8, 16}) {
        Schedule schedule = Generate(name, ranks, chunks, microbatches);
        PairBackwardsWithForwards(&schedule);
        EXPECT_TRUE(ValidateSchedule(schedule).ok())
            << name << " " << ranks << " " << chunks << " " << microbatches
            << ": " << ValidateSchedule(schedule);
      }
    }
  }
}

// A pair of DualPipe remains, and its second pass begins no other one.
TEST(PairPassesTest, LeavesExistingPairs) {
  const Schedule before = Generate("dualpipe", 4, 1, 16);
  Schedule schedule = before;
  PairBackwardsWithForwards(&schedule);
  EXPECT_TRUE(ValidateSchedule(schedule).ok()) << ValidateSchedule(schedule);
  for (int rank = 0; rank < 4; ++rank) {
    for (size_t i = 0; i < before.rank_actions[rank].size(); ++i) {
      if (before.rank_actions[rank][i].overlaps_next) {
        EXPECT_TRUE(schedule.rank_actions[rank][i].overlaps_next);
      }
    }
  }
}

// GPipe has no forward after a backward.
TEST(PairPassesTest, LeavesSchedulesWithoutNeighbors) {
  Schedule schedule = Generate("gpipe", 2, 1, 4);
  PairBackwardsWithForwards(&schedule);
  EXPECT_EQ(NumPairs(schedule, 0) + NumPairs(schedule, 1), 0);
}

}  // namespace weir::schedules::pair_passes_test
