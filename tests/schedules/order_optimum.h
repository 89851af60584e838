// SPDX-License-Identifier: Apache-2.0
// The smallest cost of a pipeline with split backwards, by exhaustive search,
// as a reference for the automatic orders. Supports a few ranks and
// microbatches and small integer times. Shares no code with the generators.
#ifndef WEIR_TESTS_SCHEDULES_ORDER_OPTIMUM_H_
#define WEIR_TESTS_SCHEDULES_ORDER_OPTIMUM_H_

#include <cstdint>

namespace weir::schedules {

// A problem with equal stages, one per rank. Memory is as in StagePassCosts.
struct OrderProblem {
  int num_ranks = 1;                                         // up to 4
  int num_microbatches = 1;                                  // up to 8
  int forward = 1, backward_input = 1, backward_weight = 1;  // at least 1
  int hop = 0;
  int activation = 1, weight_gradient_inputs = 1;  // second <= first
  int memory_limit = 1;                            // at least `activation`
};

struct Optimum {
  int cost = 0;            // largest time from a rank's first start to last end
  bool is_proven = false;  // if false, `cost` is only a lower bound
  int64_t num_states = 0;
};

// Returns the smallest cost over every order of every rank. Merges equivalent
// states and prunes by lower bounds. Gives up after `max_states` states.
Optimum FindOptimum(const OrderProblem& problem, int64_t max_states);

}  // namespace weir::schedules

#endif  // WEIR_TESTS_SCHEDULES_ORDER_OPTIMUM_H_
