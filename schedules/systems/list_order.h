// SPDX-License-Identifier: Apache-2.0
// List scheduling of a pipeline in which links are resources like stages: SPP's
// execution of a plan.
#ifndef WEIR_SCHEDULES_SYSTEMS_LIST_ORDER_H_
#define WEIR_SCHEDULES_SYSTEMS_LIST_ORDER_H_

#include <vector>

#include "schedules/action.h"

namespace weir::schedules {

struct ListOrder {
  std::vector<std::vector<Action>> rank_actions;  // [stage]
  std::vector<double> ends;    // [stage] end of its last pass, from the start
  std::vector<int> most_kept;  // [stage] microbatches between F and B
};

// Orders the passes by list scheduling. `forward` and `backward`: seconds of a
// microbatch on the resources in pipeline order: stage 0, link 0, stage 1, ...
// A microbatch passes all forwards, then all backwards. An idle resource
// immediately takes what is ready, backwards first, then the earliest
// microbatch. O(resources x microbatches x log of either).
ListOrder ListOrderOf(const std::vector<double>& forward,
                      const std::vector<double>& backward,
                      int num_microbatches);

}  // namespace weir::schedules

#endif  // WEIR_SCHEDULES_SYSTEMS_LIST_ORDER_H_
