// SPDX-License-Identifier: Apache-2.0
#include "plan/synthesis/order_bound.h"

#include <algorithm>
#include <cmath>

#include "gtest/gtest.h"
#include "tests/plan/synthesis/order_instances.h"

namespace weir::plan::order_bound_test {

// Checks all placements; there are two if there are two chunks.
void CheckBelowAllOrders(const OrderProblem& problem, Interleavings which,
                         int* num_tight, int* num_all) {
  for (const std::vector<int>& route : PlacementsOf(problem)) {
    const double least = LeastOfAllOrders(problem, route, which);
    if (!std::isfinite(least)) continue;
    const OrderBound bound = LowerBoundOf(PassTable(problem, route));
    ASSERT_LE(bound.value, least * (1 + 1e-9)) << bound.reason;
    *num_tight += bound.value >= least * (1 - 1e-9);
    ++*num_all;
  }
}

TEST(OrderBoundTest, NoOrderOfTinyProblemsIsBelow) {
  std::mt19937 random(11);
  int num_tight = 0, num_all = 0;
  struct Shape {
    int p, m, v, rounds;
  };
  for (const Shape& shape :
       {Shape{1, 3, 1, 10}, Shape{2, 2, 1, 60}, Shape{2, 3, 1, 80},
        Shape{3, 2, 1, 60}, Shape{3, 3, 1, 12}, Shape{1, 2, 2, 20},
        Shape{2, 1, 2, 20}, Shape{2, 4, 1, 10}}) {
    for (int round = 0; round < shape.rounds; ++round) {
      OrderProblem problem =
          RandomOrderProblem(shape.p, shape.m, shape.v, random);
      for (OrderObjective objective :
           {OrderObjective::kMakespan, OrderObjective::kSpan}) {
        problem.objective = objective;
        CheckBelowAllOrders(problem, Interleavings::kInOrder, &num_tight,
                            &num_all);
      }
    }
  }
  EXPECT_GE(num_all, 400);
  // A valid bound may be useless; this checks that it is often tight.
  EXPECT_GE(num_tight, num_all / 3) << num_tight << " of " << num_all;
  RecordProperty("tight", num_tight);
  RecordProperty("all", num_all);
}

// With one rank, the bound is the optimum.
TEST(OrderBoundTest, IsTheOptimumOfOneRank) {
  std::mt19937 random(13);
  int num_all = 0;
  for (int round = 0; round < 60; ++round) {
    const OrderProblem problem = RandomOrderProblem(1, 3, 1, random);
    const double least =
        LeastOfAllOrders(problem, {0}, Interleavings::kInOrder);
    if (!std::isfinite(least)) continue;
    EXPECT_NEAR(LowerBoundOf(PassTable(problem, {0})).value, least,
                1e-9 * least);
    ++num_all;
  }
  EXPECT_GE(num_all, 40);
}

// Bounds from a single rank would be 57.6 and 48.1, from how long microbatches
// are held, and 37.8, from the work of one rank.
TEST(OrderBoundTest, KnowsWhatTheOthersTake) {
  OrderProblem half = {.num_ranks = 6, .num_microbatches = 12};
  half.costs.stages = {{.backward_input = 1.1, .backward_weight = 0.8}};
  half.costs.hop = 0.1;
  half.memory_limit = 3;
  const std::vector<int> six = {0, 1, 2, 3, 4, 5};
  EXPECT_GE(LowerBoundOf(PassTable(half, six)).value, 63.4 - 1e-6);
  // The bound is not computed beyond the requested value.
  EXPECT_EQ(LowerBoundOf(PassTable(half, six), 60).value, 60);

  OrderProblem small = {.num_ranks = 4, .num_microbatches = 10};
  small.costs.stages = {{.backward_input = 1.2,
                         .backward_weight = 0.9,
                         .activation = 4,
                         .weight_gradient_inputs = 1}};
  small.costs.hop = 0.1;
  small.memory_limit = 8;
  const std::vector<int> four = {0, 1, 2, 3};
  EXPECT_GE(LowerBoundOf(PassTable(small, four)).value, 54.6 - 1e-6);

  OrderProblem span = {.num_ranks = 4, .num_microbatches = 9};
  span.costs.stages = {
      {.forward = 1.3, .backward_input = 1.2, .backward_weight = 0.7},
      {.forward = 0.9, .backward_input = 1, .backward_weight = 0.9},
      {.forward = 1.1, .backward_input = 1.1, .backward_weight = 1},
      {.forward = 1.6, .backward_input = 1.8, .backward_weight = 0.8}};
  span.costs.hop = 0.2;
  span.memory_limit = 4;
  span.objective = OrderObjective::kSpan;
  EXPECT_NEAR(LowerBoundOf(PassTable(span, four)).value, 43.1, 1e-6);
}

// The bound holds with transfers to the host too.
TEST(OrderBoundTest, HoldsWithOffloads) {
  int num_all = 0;
  for (int offload : {1, 2, 4}) {
    for (int memory : {1, 2}) {
      for (int m : {2, 3, 4}) {
        const schedules::OffloadProblem given = {
            .num_microbatches = m,
            .offload = offload,
            .weight_gradient_inputs = m % 2,
            .memory = memory};
        const std::optional<int> least =
            schedules::ShortestBatch(given, 300'000);
        if (!least.has_value()) continue;
        const OrderProblem problem = Offloading(given);
        const OrderBound bound = LowerBoundOf(PassTable(problem, {0, 1}));
        EXPECT_LE(bound.value, *least * (1 + 1e-9)) << bound.reason;
        EXPECT_GE(bound.value, *least * 0.6) << bound.reason;
        ++num_all;
      }
    }
  }
  EXPECT_GE(num_all, 10);
}

// With equal stages and 1F1B's memory, the bound is that of ZB-H1: m(F+I+W) +
// (p-1)(F+I-W).
TEST(OrderBoundTest, IsAClosedFormWhereOneIsKnown) {
  OrderProblem problem = {.num_ranks = 4, .num_microbatches = 8};
  // Without a limit, it is the last rank's work plus one way through the
  // pipeline.
  EXPECT_EQ(LowerBoundOf(PassTable(problem, {0, 1, 2, 3})).value, 3 + 24);
  problem.memory_limit = 1;  // one microbatch at a time, W in between
  EXPECT_NEAR(LowerBoundOf(PassTable(problem, {0, 1, 2, 3})).value, 8 * (8 + 1),
              2e-7);  // the limit has a relative tolerance of 1e-9
}

}  // namespace weir::plan::order_bound_test
