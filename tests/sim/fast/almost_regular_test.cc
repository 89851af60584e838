// SPDX-License-Identifier: Apache-2.0
// Checks that the extrapolation of almost periodic orders is either declined or
// exact.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <optional>
#include <utility>

#include "schedules/registry.h"
#include "schedules/validate.h"
#include "tests/sim/short_runs.h"

namespace weir::sim::almost_regular_test {

// Swaps neighboring actions of random ranks: near the start, near the end or
// anywhere.
void Disturb(schedules::Schedule* schedule, Cases* cases) {
  const int num_swaps = cases->Int(1, 6), where = cases->Int(0, 2);
  for (int k = 0; k < num_swaps; ++k) {
    const schedules::Schedule before = *schedule;
    auto& actions =
        schedule->rank_actions[cases->Int(0, schedule->num_ranks - 1)];
    const auto count = static_cast<int>(actions.size());
    const int near_end = std::max(count / 8, 2);
    int at = cases->Int(0, count - 2);
    if (where == 0) at = cases->Int(0, near_end - 2);
    if (where == 1) at = count - cases->Int(2, near_end);
    std::swap(actions[at], actions[at + 1]);
    if (!schedules::ValidateSchedule(*schedule).ok()) *schedule = before;
  }
}

// Swaps the same two actions in every period.
void DisturbAlike(schedules::Schedule* schedule, Cases* cases) {
  const schedules::Schedule before = *schedule;
  auto& actions =
      schedule->rank_actions[cases->Int(0, schedule->num_ranks - 1)];
  const auto count = static_cast<int>(actions.size());
  const int period = cases->Int(2, 12);
  for (int at = cases->Int(0, count / 3); at + 1 < count; at += period) {
    std::swap(actions[at], actions[at + 1]);
  }
  if (!schedules::ValidateSchedule(*schedule).ok()) *schedule = before;
}

TEST(AlmostRegularTest, WhatIsExtrapolatedIsTheWholeRun) {
  const char* more = std::getenv("WEIR_ALMOST_REGULAR_SEEDS");
  const int num_seeds = more != nullptr ? std::atoi(more) : 40;
  int num_all = 0, num_extrapolated = 0;
  for (const schedules::ScheduleKind& kind : schedules::AllScheduleKinds()) {
    if (!kind.flush) continue;
    for (int seed = 0; seed < num_seeds; ++seed) {
      Cases cases(seed);
      std::optional<schedules::Schedule> schedule = cases.Next(kind);
      if (!schedule.has_value()) break;
      if (cases.Int(0, 1) == 0) DisturbAlike(&*schedule, &cases);
      Disturb(&*schedule, &cases);
      const World world = WorldFor(kind, *schedule, false, &cases);
      const OneRun whole(*schedule, world);
      if (!whole.recording.complete()) continue;
      ++num_all;
      const Extrapolated shortened = Extrapolate(*schedule, world);
      if (!shortened.seconds.has_value()) continue;
      ++num_extrapolated;
      const double expected = whole.Makespan();
      EXPECT_NEAR(*shortened.seconds, expected, 1e-9 * expected)
          << kind.name << " seed " << seed;
    }
  }
  EXPECT_GE(num_extrapolated, 0.2 * num_all) << num_all;
}

}  // namespace weir::sim::almost_regular_test
