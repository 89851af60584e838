// SPDX-License-Identifier: Apache-2.0
// Random problems, and the best of all orders of tiny ones, which shares no
// code with the searches that it judges.
#ifndef WEIR_TESTS_PLAN_SYNTHESIS_ORDER_INSTANCES_H_
#define WEIR_TESTS_PLAN_SYNTHESIS_ORDER_INSTANCES_H_

#include <random>
#include <vector>

#include "plan/synthesis/order_problem.h"
#include "tests/schedules/offload_optimum.h"

namespace weir {

// Uneven stages with whole times, a hop, a limit that at least one microbatch
// keeps; often no limit.
OrderProblem RandomOrderProblem(int num_ranks, int num_microbatches,
                                int num_chunks, std::mt19937& random);

enum class Interleavings {
  kAll,      // of every rank's F < I < W of each microbatch
  kInOrder,  // those that take microbatches by number
};

// The least objective of all executable orders within the limit on one
// placement. Splits every backward.
double LeastOfAllOrders(const OrderProblem& problem,
                        const std::vector<int>& route, Interleavings which);

// The same as a problem of orders.
OrderProblem Offloading(const OffloadProblem& given);

// Is CBC here?
bool HasCbc();

}  // namespace weir

#endif  // WEIR_TESTS_PLAN_SYNTHESIS_ORDER_INSTANCES_H_
