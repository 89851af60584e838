// SPDX-License-Identifier: Apache-2.0
#include "plan/synthesis/order_bound.h"

#include <algorithm>
#include <cmath>

#include "gtest/gtest.h"
#include "tests/plan/synthesis/order_instances.h"

namespace weir {
namespace {

// Two placements where there are two chunks.
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
  // That it is a bound proves nothing about its use; this does.
  EXPECT_GE(num_tight, num_all / 3) << num_tight << " of " << num_all;
  RecordProperty("tight", num_tight);
  RecordProperty("all", num_all);
}

// m(F+I+W) + (p-1)(F+I-W) for equal stages within 1F1B's memory: ZB-H1's.
TEST(OrderBoundTest, IsAClosedFormWhereOneIsKnown) {
  OrderProblem problem = {.num_ranks = 4, .num_microbatches = 8};
  // No limit: the last rank's work and nothing before but one way.
  EXPECT_EQ(LowerBoundOf(PassTable(problem, {0, 1, 2, 3})).value, 3 + 24);
  problem.memory_limit = 1;  // one microbatch at a time, W between
  EXPECT_NEAR(LowerBoundOf(PassTable(problem, {0, 1, 2, 3})).value, 8 * (8 + 1),
              2e-7);  // the limit is kept to 1e-9 of itself
}

}  // namespace
}  // namespace weir
