// SPDX-License-Identifier: Apache-2.0
// The shortest batch of any schedule with offloading, for a few microbatches,
// by exhaustive search over all actions of the ranks. Shares no code with the
// generators that it checks.
#ifndef WEIR_TESTS_SCHEDULES_OFFLOAD_OPTIMUM_H_
#define WEIR_TESTS_SCHEDULES_OFFLOAD_OPTIMUM_H_

#include <cstdint>
#include <optional>

namespace weir::schedules {

// A problem with equal stages, one per rank. Times are integers, so some
// shortest schedule starts every action at an integer time.
struct OffloadProblem {
  int num_ranks = 2;
  int num_microbatches = 2;
  int forward = 1, backward_input = 1, backward_weight = 1;
  int offload = 1;  // one direction; 0: no offloading
  // Memory of one microbatch: from F to I, and from I to W. Requires:
  // weight_gradient_inputs <= activation.
  int activation = 1, weight_gradient_inputs = 1;
  int memory = 2;  // per rank, at any time
};

// Returns the smallest time from the first action to the end of the last, over
// all schedules with split backwards in which each kind of pass processes the
// microbatches in order. An activation may be offloaded more than once, so the
// result is a lower bound for what a Schedule can represent. Returns nullopt if
// more than `max_states` states must be visited.
std::optional<int> ShortestBatch(const OffloadProblem& problem,
                                 int64_t max_states);

}  // namespace weir::schedules

#endif  // WEIR_TESTS_SCHEDULES_OFFLOAD_OPTIMUM_H_
