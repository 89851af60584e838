// SPDX-License-Identifier: Apache-2.0
// Random problems, and the best of all orders of tiny ones. Shares no code with
// the searches that it checks.
#ifndef WEIR_TESTS_PLAN_SYNTHESIS_ORDER_INSTANCES_H_
#define WEIR_TESTS_PLAN_SYNTHESIS_ORDER_INSTANCES_H_

#include <random>
#include <vector>

#include "plan/synthesis/order_problem.h"
#include "tests/schedules/offload_optimum.h"

namespace weir::plan {

// Returns a problem with uneven stages, integer times, a transfer time, and a
// limit that admits at least one microbatch; often there is no limit.
OrderProblem RandomOrderProblem(int num_ranks, int num_microbatches,
                                int num_chunks, std::mt19937& random);

enum class Interleavings {
  kAll,      // all with F < I < W for each microbatch of a rank
  kInOrder,  // those that process microbatches in order
};

// Returns the smallest objective of all executable orders within the limit, for
// one placement. Every backward is split.
double LeastOfAllOrders(const OrderProblem& problem,
                        const std::vector<int>& route, Interleavings which);

// Returns the same problem as an order problem.
OrderProblem Offloading(const schedules::OffloadProblem& given);

// Returns true if CBC is installed.
bool HasCbc();

}  // namespace weir::plan

#endif  // WEIR_TESTS_PLAN_SYNTHESIS_ORDER_INSTANCES_H_
