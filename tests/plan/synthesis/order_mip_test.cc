// SPDX-License-Identifier: Apache-2.0
// Compares the mixed-integer program of an order with all orders.
#include "plan/synthesis/order_mip.h"

#include <cmath>

#include "gtest/gtest.h"
#include "plan/synthesis/order_bound.h"
#include "schedules/validate.h"
#include "tests/plan/synthesis/order_instances.h"

namespace weir::plan::order_mip_test {

// Returns the value of the program's order, or 0 if it is not solved.
double SolvedValue(const OrderProblem& problem, const std::vector<int>& route,
                   schedules::Schedule* found = nullptr) {
  const PassTable table(problem, route);
  const PassRows start = table.OneByOne();
  const schedules::Schedule first = table.ScheduleOf(start);
  EXPECT_TRUE(schedules::ValidateSchedule(first).ok());
  const OrderMip mip(table, LowerBoundOf(table).value,
                     ObjectiveOf(problem, first));
  MipOptions options = {.seconds = 20};
  if (!problem.may_offload) {
    options.start = mip.StartOf(start);
    EXPECT_LT(LargestViolation(mip.model(), options.start), 1e-4);
  }
  const auto result = SolveMip(mip.model(), options);
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok() || result->state != MipResult::State::kOptimal) return 0;
  schedules::Schedule schedule = mip.ScheduleOf(result->values);
  EXPECT_TRUE(schedules::ValidateSchedule(schedule).ok())
      << schedules::ValidateSchedule(schedule);
  if (found != nullptr) *found = schedule;
  if (!problem.may_offload) {
    EXPECT_TRUE(FitsLimit(problem, schedule));
    // The program's objective equals the time of the order.
    EXPECT_NEAR(ObjectiveOf(problem, schedule), result->objective * mip.unit(),
                1e-4);
  }
  return result->objective * mip.unit();
}

TEST(OrderMipTest, FindsTheBestOfAllOrders) {
  if (!HasCbc()) GTEST_SKIP() << "cbc is not here (coinor-cbc)";
  std::mt19937 random(23);
  struct Shape {
    int p, m, v, rounds;
  };
  int num_solved = 0;
  for (const Shape& shape :
       {Shape{2, 2, 1, 12}, Shape{2, 3, 1, 10}, Shape{3, 2, 1, 10},
        Shape{1, 2, 2, 3}, Shape{2, 1, 2, 4}}) {
    for (int round = 0; round < shape.rounds; ++round) {
      OrderProblem problem =
          RandomOrderProblem(shape.p, shape.m, shape.v, random);
      problem.objective =
          round % 3 == 2 ? OrderObjective::kSpan : OrderObjective::kMakespan;
      for (const std::vector<int>& route : PlacementsOf(problem)) {
        // Uses all orders if they are few, which shows that processing
        // microbatches in order loses nothing.
        const double least =
            LeastOfAllOrders(problem, route,
                             shape.m == 2 && shape.v == 1 && shape.p == 2
                                 ? Interleavings::kAll
                                 : Interleavings::kInOrder);
        if (!std::isfinite(least)) continue;
        SCOPED_TRACE(round);
        EXPECT_NEAR(SolvedValue(problem, route), least, 1e-4);
        ++num_solved;
      }
    }
  }
  EXPECT_GE(num_solved, 30);
}

// A program that allows whole backwards can start from an order that has some.
TEST(OrderMipTest, AnOrderOfWholeBackwardsIsALegalStart) {
  std::mt19937 random(5);
  for (int round = 0; round < 10; ++round) {
    SCOPED_TRACE(round);
    OrderProblem problem = RandomOrderProblem(2, 3, 1, random);
    for (schedules::StagePassCosts& stage : problem.costs.stages) {
      stage.backward = stage.backward_input + stage.backward_weight - 0.5;
    }
    const PassTable table(problem, PlacementsOf(problem)[0]);
    const PassRows rows = table.OneByOne();
    const schedules::Schedule schedule = table.ScheduleOf(rows);
    ASSERT_EQ(schedule.rank_actions[0][1].op, schedules::Op::kBackward);
    const OrderMip mip(table, LowerBoundOf(table).value,
                       ObjectiveOf(problem, schedule));
    EXPECT_LT(LargestViolation(mip.model(), mip.StartOf(rows)), 1e-4);
  }
}

// OptPipe's program: with transfers to the host, it finds the optimum of an
// exhaustive search. Without them it is Zero Bubble's program, which is never
// better.
TEST(OrderMipTest, WithOffloadsItIsAnExhaustiveSearchsOptimum) {
  if (!HasCbc()) GTEST_SKIP() << "cbc is not here (coinor-cbc)";
  int num_better = 0;
  for (const schedules::OffloadProblem& given :
       {schedules::OffloadProblem{.num_microbatches = 2, .memory = 1},
        schedules::OffloadProblem{
            .num_microbatches = 3, .weight_gradient_inputs = 0, .memory = 1},
        schedules::OffloadProblem{.num_microbatches = 2,
        .forward = 2,
        .backward_input = 3,
        .weight_gradient_inputs = 0,
        .memory = 1}}) {
    const std::optional<int> least = schedules::ShortestBatch(given, 2'000'000);
    ASSERT_TRUE(least.has_value());
    OrderProblem problem = Offloading(given);
    const std::vector<int> route = PlacementsOf(problem)[0];
    const double with = SolvedValue(problem, route);
    EXPECT_NEAR(with, *least, 1e-4);
    problem.may_offload = false;
    const double without = SolvedValue(problem, route);
    EXPECT_GE(without, with - 1e-4);
    num_better += without > with + 1e-4;
  }
  EXPECT_GE(num_better, 1);
}

// Transfers that take longer than the whole batch are never made, so the
// optimum is that of an order without offloads.
TEST(OrderMipTest, TransfersLongerThanTheBatchAreNotMade) {
  if (!HasCbc()) GTEST_SKIP() << "cbc is not here (coinor-cbc)";
  std::mt19937 random(41);
  for (int round = 0; round < 4; ++round) {
    OrderProblem problem = RandomOrderProblem(2, 2, 1, random);
    problem.memory_limit = HeldByMicrobatch(problem);
    for (schedules::StagePassCosts& stage : problem.costs.stages) {
      stage.weight_gradient_inputs = 0;  // required: no larger than activations
      stage.offload = 1000;
    }
    const std::vector<int> route = PlacementsOf(problem)[0];
    const double without = SolvedValue(problem, route);
    EXPECT_GT(without, 0);
    problem.may_offload = true;
    EXPECT_NEAR(SolvedValue(problem, route), without, 1e-4);
  }
}

// Only the middle one of three ranks offloads. It has room for two activations;
// a transfer takes 4 s in each direction. Its forwards begin at 9 s, 10 s, 14 s
// (after the first offload) and 18 s (after the second). Gradients arrive from
// 28 s on. The first activation is reloaded from 22 s, when the third offload
// ends, to 26 s, the second by 30 s, the third by 34 s and the last by 38 s.
// The last gradient ends at 39 s, and that of the first rank 8 + 1 s later.
TEST(OrderMipTest, OneActivationAtATimeGoesOrComes) {
  if (!HasCbc()) GTEST_SKIP() << "cbc is not here (coinor-cbc)";
  OrderProblem problem = {
      .num_ranks = 3, .num_microbatches = 4, .memory_limit = 2};
  problem.can_split = false;
  problem.may_offload = true;
  problem.costs.stages.assign(3, {.forward = 1,
                                  .backward_input = 1,
                                  .backward_weight = 0,
                                  .offload = 100,
                                  .activation = 0,
                                  .weight_gradient_inputs = 0});
  problem.costs.stages[1].offload = 4;
  problem.costs.stages[1].activation = 1;
  problem.costs.hop = 8;
  EXPECT_NEAR(SolvedValue(problem, PlacementsOf(problem)[0]), 48, 1e-4);
}

}  // namespace weir::plan::order_mip_test
