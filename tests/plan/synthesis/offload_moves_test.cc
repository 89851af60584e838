// SPDX-License-Identifier: Apache-2.0
#include "plan/synthesis/offload_moves.h"

#include <algorithm>
#include <cmath>

#include "gtest/gtest.h"
#include "schedules/registry.h"
#include "schedules/validate.h"
#include "schedules/walk.h"
#include "tests/plan/synthesis/order_instances.h"

namespace weir::plan::offload_moves_test {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

double MostHeld(const OrderProblem& problem,
                const schedules::Schedule& schedule) {
  const std::vector<double> held = PeakHeld(problem, schedule);
  return *std::max_element(held.begin(), held.end());
}

int NumReloads(const PassTable& table, const OffloadRows& rows) {
  int num = 0;
  for (const std::vector<int32_t>& row : rows.ranks) {
    for (int32_t number : row) num += IsReload(table, number);
  }
  return num;
}

// Times and memory of random orders with random offloads equal those of
// TimedWalk and PeakHeld.
TEST(OffloadClockTest, TimesAndCountsAsTheWholeWalkDoes) {
  std::mt19937 random(67);
  int num_all = 0, num_deadlocks = 0, num_waiting = 0;
  for (int round = 0; round < 2000; ++round) {
    OrderProblem problem = RandomOrderProblem(2 + round % 3, 4, 1, random);
    problem.may_offload = true;
    problem.memory_limit = kNoLimit;
    for (schedules::StagePassCosts& stage : problem.costs.stages) {
      stage.offload = static_cast<double>(random() % 9);
    }
    const PassTable table(problem, PlacementsOf(problem)[0]);
    OffloadRows rows = {table.OneByOne().ranks, static_cast<int>(random() % 3)};
    for (std::vector<int32_t>& row : rows.ranks) {
      for (int k = 0; k < problem.num_microbatches; ++k) {
        if (random() % 2 == 0) continue;
        const auto gradient =
            std::find_if(row.begin(), row.end(), [&](int32_t number) {
              return number < table.num_passes() && number % 3 == 1 &&
                     table.microbatch(number) == k;
            });
        row.insert(gradient, ReloadOf(table, *gradient));
      }
      for (int change = 0; change < 20; ++change) {
        const size_t at = random() % (row.size() - 1);
        const auto cell = [&](int32_t number) {
          return IsReload(table, number) ? number - table.num_passes()
                                         : number / 3;
        };
        if (cell(row[at]) != cell(row[at + 1])) std::swap(row[at], row[at + 1]);
      }
    }
    const schedules::Schedule schedule = ScheduleOf(table, rows);
    OffloadClock clock(table);
    const bool runs = clock.Try(rows, kNoLimit, kNoLimit);
    ASSERT_EQ(runs, schedules::ValidateSchedule(schedule).ok());
    num_deadlocks += !runs;
    if (!runs) continue;
    const schedules::WalkTimes times =
        schedules::TimedWalk(schedule, problem.costs);
    ASSERT_NEAR(clock.makespan(), times.makespan(), 1e-9);
    ASSERT_NEAR(clock.span(), times.span(), 1e-9);
    const double held = MostHeld(problem, schedule);
    EXPECT_TRUE(clock.Try(rows, held * (1 + 1e-12), kNoLimit));
    EXPECT_FALSE(clock.Try(rows, held * (1 - 1e-6), kNoLimit));
    schedules::Schedule free = schedule;
    free.resident_activations = 0;
    num_waiting += schedules::TimedWalk(free, problem.costs).makespan() <
                   times.makespan() - 1e-9;
    ++num_all;
  }
  EXPECT_GE(num_all, 500);
  EXPECT_GE(num_deadlocks, 50);
  EXPECT_GE(num_waiting, 20);
}

// Orders of named systems are read without change.
TEST(OffloadClockTest, ReadsNamedOrders) {
  schedules::ScheduleSpec spec = {.num_ranks = 4, .num_microbatches = 8};
  spec.costs.stages = {{.offload = 0.5}};
  const auto named =
      schedules::GenerateSchedule("optpipe:memory-limit=2", spec);
  ASSERT_TRUE(named.ok());
  OrderProblem problem = {.num_ranks = 4,
                          .num_microbatches = 8,
                          .costs = spec.costs,
                          .memory_limit = 2,
                          .may_offload = true};
  const PassTable table(problem, {0, 1, 2, 3});
  const auto rows = OffloadRowsOf(table, *named);
  ASSERT_TRUE(rows.has_value());
  EXPECT_GE(NumReloads(table, *rows), 4);
  const schedules::Schedule again = ScheduleOf(table, *rows);
  EXPECT_TRUE(FitsLimit(problem, again));
  EXPECT_NEAR(ObjectiveOf(problem, again), ObjectiveOf(problem, *named), 1e-9);
}

// The search is never below the optimum of an exhaustive search, and mostly
// equal.
TEST(OffloadMovesTest, FindsTheBestOfTinyProblems) {
  int num_best = 0, num_all = 0, num_moved = 0;
  for (int offload : {1, 2}) {
    for (int memory : {1, 2}) {
      for (int m : {2, 3, 4}) {
        for (int weight_inputs : {0, 1}) {
          const schedules::OffloadProblem given = {
              .num_microbatches = m,
              .offload = offload,
              .weight_gradient_inputs = weight_inputs,
              .memory = memory};
          const std::optional<int> least =
              schedules::ShortestBatch(given, 300'000);
          if (!least.has_value()) continue;
          const OrderProblem problem = Offloading(given);
          const PassTable table(problem, {0, 1});
          double best = kNoLimit;
          for (uint64_t seed : {1, 2, 3}) {
            const OffloadSearchResult found =
                SearchOffloads(table, {table.OneByOne().ranks, memory},
                               {.num_moves = 8000, .seed = seed});
            const schedules::Schedule schedule = ScheduleOf(table, found.rows);
            ASSERT_TRUE(schedules::ValidateSchedule(schedule).ok());
            ASSERT_TRUE(FitsLimit(problem, schedule));
            ASSERT_NEAR(ObjectiveOf(problem, schedule), found.value, 1e-9);
            ASSERT_GE(found.value, *least - 1e-9);
            best = std::min(best, found.value);
            num_moved += NumReloads(table, found.rows) > 0;
          }
          num_best += best <= *least + 1e-9;
          ++num_all;
        }
      }
    }
  }
  EXPECT_GE(num_all, 12);
  EXPECT_GE(num_best, num_all * 9 / 10) << num_best << " of " << num_all;
  EXPECT_GE(num_moved, 4);
}

TEST(OffloadMovesTest, SameSeedSameOrder) {
  OrderProblem problem = {.num_ranks = 3, .num_microbatches = 6};
  problem.may_offload = true;
  problem.memory_limit = 2;
  const PassTable table(problem, {0, 1, 2});
  const auto found = [&] {
    return SearchOffloads(table, {table.OneByOne().ranks, 2},
                          {.num_moves = 5000, .seed = 9})
        .rows.ranks;
  };
  EXPECT_EQ(found(), found());
}

}  // namespace weir::plan::offload_moves_test
