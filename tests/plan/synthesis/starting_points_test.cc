// SPDX-License-Identifier: Apache-2.0
#include "plan/synthesis/starting_points.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "schedules/validate.h"

namespace weir::plan::starting_points_test {

OrderProblem SomeProblem() {
  OrderProblem problem = {.num_ranks = 2, .num_microbatches = 6};
  problem.may_offload = true;
  problem.costs.stages = {{}};
  return problem;
}

// Returns an order in which each rank runs `warmup` forwards, then alternates
// between a forward and a backward. With `offloads`, the first microbatch is
// offloaded and reloaded.
schedules::Schedule WithWarmup(const OrderProblem& problem, int warmup,
                               bool offloads) {
  schedules::Schedule schedule = EmptyOrder(problem, {0, 1});
  const int m = problem.num_microbatches;
  for (int rank = 0; rank < 2; ++rank) {
    std::vector<schedules::Action>& actions = schedule.rank_actions[rank];
    for (int k = 0; k < m + warmup; ++k) {
      if (k < m) actions.push_back({schedules::Op::kForward, rank, k});
      if (k == 0 && offloads)
        actions.push_back({schedules::Op::kOffload, rank, 0});
      if (k < warmup) continue;
      if (k == warmup && offloads)
        actions.push_back({schedules::Op::kReload, rank, 0});
      actions.push_back({schedules::Op::kBackwardInput, rank, k - warmup});
      actions.push_back({schedules::Op::kBackwardWeight, rank, k - warmup});
    }
  }
  EXPECT_TRUE(schedules::ValidateSchedule(schedule).ok()) << warmup;
  return schedule;
}

template <typename Starts>
std::vector<std::string> NamesOf(const Starts& starts) {
  std::vector<std::string> names;
  for (const auto& [name, rows] : starts) names.push_back(name);
  return names;
}

// The first three distinct starts are kept.
TEST(GroundTest, StartsAreFewAndDifferent) {
  const OrderProblem problem = SomeProblem();
  for (const bool offloads : {false, true}) {
    StartingPoint ground = StartingPointOf(problem, {0, 1}, {}, 0);
    ASSERT_EQ(NamesOf(ground.starts),
              std::vector<std::string>{"one microbatch at a time"});
    ground.starts.clear();
    for (const int warmup : {1, 1, 2, 1, 3, 4, 5}) {
      const schedules::Schedule schedule =
          WithWarmup(problem, warmup, offloads);
      const std::string name = absl::StrCat(warmup);
      (offloads ? AddOffloadStart : AddStart)(problem, name, schedule, &ground);
    }
    const std::vector<std::string> three = {"1", "2", "3"};
    EXPECT_EQ(NamesOf(ground.starts),
              offloads ? std::vector<std::string>() : three);
    EXPECT_EQ(NamesOf(ground.offload_starts),
              offloads ? three : std::vector<std::string>());
  }
}

// AddStart ignores orders with offloads. AddOffloadStart accepts orders with
// and without offloads.
TEST(GroundTest, KnowsOrdersThatHaveOffloads) {
  const OrderProblem problem = SomeProblem();
  StartingPoint ground = StartingPointOf(problem, {0, 1}, {}, 0);
  ground.starts.clear();
  const schedules::Schedule with = WithWarmup(problem, 2, true);
  const schedules::Schedule without = WithWarmup(problem, 2, false);
  EXPECT_TRUE(HasOffloads(with));
  EXPECT_FALSE(HasOffloads(without));
  AddStart(problem, "with", with, &ground);
  EXPECT_TRUE(ground.starts.empty());
  AddStart(problem, "without", without, &ground);
  EXPECT_EQ(ground.starts.size(), 1);
  AddOffloadStart(problem, "with", with, &ground);
  AddOffloadStart(problem, "without", without, &ground);
  EXPECT_EQ(ground.offload_starts.size(), 2);
}

TEST(GroundTest, StartsStandOnThePlacementAndWithinTheLimit) {
  OrderProblem problem = SomeProblem();
  problem.memory_limit = 3;  // warmups of 1 and 2 hold 2 and 3
  for (const bool offloads : {false, true}) {
    StartingPoint ground = StartingPointOf(problem, {0, 1}, {}, 0);
    StartingPoint other = StartingPointOf(problem, {1, 0}, {}, 0);
    ground.starts.clear();
    other.starts.clear();
    for (const int warmup : {5, 2, 1}) {
      const schedules::Schedule schedule =
          WithWarmup(problem, warmup, offloads);
      const std::string name = absl::StrCat(warmup);
      const auto add = offloads ? AddOffloadStart : AddStart;
      add(problem, name, schedule, &ground);
      add(problem, name, schedule, &other);
    }
    const std::vector<std::string> two = {"2", "1"};
    EXPECT_EQ(
        offloads ? NamesOf(ground.offload_starts) : NamesOf(ground.starts),
        two);
    EXPECT_TRUE(other.starts.empty());
    EXPECT_TRUE(other.offload_starts.empty());
  }
}

// As many activations stay on the GPU as fit within the limit. 0: all of them.
TEST(GroundTest, OffloadsStartWithAsManyActivationsAsFit) {
  OrderProblem problem = SomeProblem();
  for (const double activation : {1.0, 2.0}) {
    problem.costs.stages = {{.activation = activation}};
    problem.memory_limit = 5;
    const auto resident = [&] {
      StartingPoint ground = StartingPointOf(problem, {0, 1}, {}, 0);
      AddOffloadStart(problem, "one", WithWarmup(problem, 1, true), &ground);
      EXPECT_EQ(ground.offload_starts.size(), 1);
      return ground.offload_starts[0].second.resident_activations;
    };
    EXPECT_EQ(resident(), activation == 1 ? 5 : 2);
    problem.memory_limit = 6 * activation;  // six microbatches
    EXPECT_EQ(resident(), 0);
  }
}

}  // namespace weir::plan::starting_points_test
