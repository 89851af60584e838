// SPDX-License-Identifier: Apache-2.0
// The collectives that a pass calls.
#ifndef WEIR_SIM_GRAPH_PASS_COLLECTIVES_H_
#define WEIR_SIM_GRAPH_PASS_COLLECTIVES_H_

#include <vector>

#include "schedules/action.h"
#include "sim/costs/stage_costs.h"
#include "sim/graph/communication_lowering.h"

namespace weir::sim {

// Collectives of one pass or of one overlapped pair: in sequence with its
// kernels, overlapped with them, and over the expert-parallel group.
struct PassCollectives {
  std::vector<Collectives> in_line, overlapped, experts;
};

// Appends the collectives of `action` to `calls`. `tensor` is the number of
// GPUs that share the stage's layers.
void AddCollectivesOf(const schedules::Action& action, const Costs& costs,
                      int tensor, PassCollectives* calls);

}  // namespace weir::sim

#endif  // WEIR_SIM_GRAPH_PASS_COLLECTIVES_H_
