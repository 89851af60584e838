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
// kernels, overlapped with them, over the expert-parallel group, over the GPUs
// that share an expert, over context-parallel neighbors, and the messages of a
// context-parallel ring.
struct PassCollectives {
  std::vector<Collectives> in_line, overlapped, experts, expert_tensor, context,
      ring;

  bool has_experts() const {
    return !experts.empty() || !expert_tensor.empty();
  }
  bool has_context() const { return !context.empty() || !ring.empty(); }
};

// Appends the collectives of `action` to `calls`. `tensor` is the number of
// GPUs that share the stage's layers.
void AddCollectivesOf(const schedules::Action& action, const Costs& costs,
                      int tensor, PassCollectives* calls);

// Returns the seconds of a pass that overlap with messages of a ring.
double RingSeconds(const schedules::Action& action, const StageCosts& stage);

}  // namespace weir::sim

#endif  // WEIR_SIM_GRAPH_PASS_COLLECTIVES_H_
