// SPDX-License-Identifier: Apache-2.0
#include "plan/synthesis/local_search.h"

#include <cmath>

#include "gtest/gtest.h"
#include "plan/synthesis/order_clock.h"
#include "schedules/validate.h"
#include "schedules/walk.h"
#include "tests/plan/synthesis/order_instances.h"

namespace weir::plan::local_search_test {

TEST(LocalSearchTest, NearlyAlwaysFindsTheBestOfAllOrders) {
  std::mt19937 random(29);
  struct Shape {
    int p, m, v, rounds;
  };
  int num_best = 0, num_all = 0;
  for (const Shape& shape :
       {Shape{2, 2, 1, 60}, Shape{2, 3, 1, 60}, Shape{3, 2, 1, 60},
        Shape{3, 3, 1, 10}, Shape{2, 1, 2, 20}, Shape{1, 2, 2, 10}}) {
    for (int round = 0; round < shape.rounds; ++round) {
      OrderProblem problem =
          RandomOrderProblem(shape.p, shape.m, shape.v, random);
      problem.objective =
          round % 3 == 2 ? OrderObjective::kSpan : OrderObjective::kMakespan;
      for (const std::vector<int>& route : PlacementsOf(problem)) {
        const double least =
            LeastOfAllOrders(problem, route, Interleavings::kInOrder);
        const PassTable table(problem, route);
        const PassRows start = table.OneByOne();
        if (!FitsLimit(problem, table.ScheduleOf(start))) continue;
        const LocalSearchResult found =
            SearchLocally(table, start, {.num_moves = 4000});
        const schedules::Schedule schedule = table.ScheduleOf(found.rows);
        ASSERT_TRUE(schedules::ValidateSchedule(schedule).ok());
        ASSERT_TRUE(FitsLimit(problem, schedule));
        ASSERT_NEAR(ObjectiveOf(problem, schedule), found.value, 1e-9);
        ASSERT_GE(found.value, least - 1e-9);
        num_best += found.value <= least + 1e-9;
        ++num_all;
      }
    }
  }
  EXPECT_GE(num_all, 200);
  EXPECT_GE(num_best, num_all * 95 / 100) << num_best << " of " << num_all;
}

TEST(LocalSearchTest, SameSeedSameOrder) {
  std::mt19937 random(31);
  const OrderProblem problem = RandomOrderProblem(4, 6, 1, random);
  const PassTable table(problem, PlacementsOf(problem)[0]);
  const auto found = [&](uint64_t seed) {
    return SearchLocally(table, table.OneByOne(),
                         {.num_moves = 20'000, .seed = seed})
        .rows.ranks;
  };
  EXPECT_EQ(found(5), found(5));
}

// Timing only the changed part of an order gives the same times as TimedWalk.
TEST(OrderClockTest, TimesWhatChangedAsTheWholeWalkDoes) {
  std::mt19937 random(37);
  int num_changes = 0, num_deadlocks = 0;
  for (int round = 0; round < 40; ++round) {
    const OrderProblem problem =
        RandomOrderProblem(2 + round % 3, 4, 1 + round % 2, random);
    for (const std::vector<int>& route : PlacementsOf(problem)) {
      const PassTable table(problem, route);
      PassRows rows = table.OneByOne();
      OrderClock clock(table);
      ASSERT_TRUE(clock.Try(rows, 0));
      clock.Keep();
      for (int change = 0; change < 60; ++change) {
        auto& row = rows.ranks[random() % rows.ranks.size()];
        const size_t at = random() % (row.size() - 1);
        const double since = clock.kept_start(row[at]);
        // The order of passes of the same microbatch is fixed.
        if (row[at] / 3 == row[at + 1] / 3) continue;
        std::swap(row[at], row[at + 1]);
        const schedules::Schedule schedule = table.ScheduleOf(rows);
        const bool runs = schedules::ValidateSchedule(schedule).ok();
        ASSERT_EQ(clock.Try(rows, since), runs);
        if (!runs) {
          std::swap(row[at], row[at + 1]);
          ++num_deadlocks;
          continue;
        }
        const schedules::WalkTimes times =
            schedules::TimedWalk(schedule, problem.costs);
        ASSERT_NEAR(clock.makespan(), times.makespan(), 1e-9);
        ASSERT_NEAR(clock.span(), times.span(), 1e-9);
        clock.Keep();
        ++num_changes;
      }
    }
  }
  EXPECT_GE(num_changes, 1000);
  EXPECT_GE(num_deadlocks, 10);
}

// Whole backwards that take less than their halves are found.
TEST(LocalSearchTest, JoinsBackwardsWhereThatPays) {
  OrderProblem problem = {.num_ranks = 2, .num_microbatches = 3};
  problem.costs.stages = {{.backward = 1.5}};
  const PassTable table(problem, {0, 1});
  const LocalSearchResult found =
      SearchLocally(table, table.OneByOne(), {.num_moves = 20'000});
  // 1 + 3 (1 + 1.5) + 1.5 if all backwards are whole; no order with split
  // backwards is shorter.
  EXPECT_LE(found.value, 10 + 1e-9);
  EXPECT_GE(found.value, 3 * 2.5 + 1 - 1e-9);
}

// The search depends only on ratios of times. If all of them are scaled by a
// power of two, which is exact, it makes the same moves.
TEST(LocalSearchTest, DoesNotDependOnTheUnitOfTime) {
  std::mt19937 random(43);
  for (const double scale : {0x1p-12, 0x1p+12}) {
    const OrderProblem problem = RandomOrderProblem(3, 5, 1, random);
    OrderProblem scaled = problem;
    scaled.costs.hop *= scale;
    for (schedules::StagePassCosts& stage : scaled.costs.stages) {
      stage.forward *= scale;
      stage.backward_input *= scale;
      stage.backward_weight *= scale;
    }
    const auto search = [](const OrderProblem& given) {
      const PassTable table(given, PlacementsOf(given)[0]);
      return SearchLocally(table, table.OneByOne(), {.num_moves = 3000});
    };
    const LocalSearchResult one = search(problem), other = search(scaled);
    EXPECT_EQ(one.rows.ranks, other.rows.ranks);
    EXPECT_EQ(one.value * scale, other.value);
    EXPECT_EQ(one.num_moves, 3000);
    EXPECT_EQ(other.num_moves, 3000);
    EXPECT_EQ(one.num_accepted, other.num_accepted);
  }
}

TEST(LocalSearchTest, EndsWhereTheOrderIsShortEnough) {
  std::mt19937 random(47);
  const OrderProblem problem = RandomOrderProblem(3, 5, 1, random);
  const PassTable table(problem, PlacementsOf(problem)[0]);
  const PassRows start = table.OneByOne();
  const LocalSearchResult best =
      SearchLocally(table, start, {.num_moves = 20'000});
  const double before = ObjectiveOf(problem, table.ScheduleOf(start));
  ASSERT_LT(best.value, before);
  // Makes the same moves, up to the first that reaches this value.
  const LocalSearchResult again =
      SearchLocally(table, start, {.num_moves = 20'000, .enough = best.value});
  EXPECT_EQ(again.value, best.value);
  EXPECT_LT(again.num_moves, best.num_moves);
  const LocalSearchResult none =
      SearchLocally(table, start, {.num_moves = 20'000, .enough = before});
  EXPECT_EQ(none.num_moves, 0);
  EXPECT_EQ(none.rows.ranks, start.ranks);
}

}  // namespace weir::plan::local_search_test
