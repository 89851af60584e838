// SPDX-License-Identifier: Apache-2.0
// The shortest batch that any schedule with offloading can make, for shapes of
// a handful of microbatches: an exhaustive search over everything that the
// ranks can do, sharing no code with the generators that it judges.
#ifndef WEIR_TESTS_SCHEDULES_OFFLOAD_OPTIMUM_H_
#define WEIR_TESTS_SCHEDULES_OFFLOAD_OPTIMUM_H_

#include <cstdint>
#include <optional>

namespace weir {

// Equal stages, one per rank; whole numbers, so that some shortest schedule
// starts everything at a whole number.
struct OffloadProblem {
  int num_ranks = 2;
  int num_microbatches = 2;
  int forward = 1, backward_input = 1, backward_weight = 1;
  int offload = 1;  // one way; 0: there is no host to offload to
  // Of one microbatch: from F to I, and from I to W. REQUIRES: no more W inputs
  // than activations.
  int activation = 1, weight_gradient_inputs = 1;
  int memory = 2;  // per rank, at any time
};

// The least time from the first action to the end of the last, over all
// schedules with split backwards that take forwards, backwards and weight
// gradients in the order of the microbatches. An activation may be offloaded
// more than once here: a bound below what a Schedule can say. nullopt when more
// than max_states situations have to be looked at.
std::optional<int> ShortestBatch(const OffloadProblem& problem,
                                 int64_t max_states);

}  // namespace weir

#endif  // WEIR_TESTS_SCHEDULES_OFFLOAD_OPTIMUM_H_
