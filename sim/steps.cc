// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/pipeline_graph.h"

namespace weir {
namespace {

// Position of the first forward of `stage` that reads `version`; the end of the
// order when none does.
int32_t FirstReader(const Schedule& schedule, const Semantics& semantics,
                    int rank, int stage, int version, int32_t from) {
  const auto& actions = schedule.rank_actions[rank];
  for (size_t i = from; i < actions.size(); ++i) {
    const Action& action = actions[i];
    if (action.stage == stage && action.op == Op::kForward &&
        semantics.uses[stage][action.microbatch].forward_version >= version) {
      return static_cast<int32_t>(i);
    }
  }
  return static_cast<int32_t>(actions.size());
}

}  // namespace

std::vector<std::vector<Step>> PlanSteps(const Schedule& schedule,
                                         const Semantics& semantics,
                                         ReductionMode mode) {
  const bool overlapped = mode == REDUCTION_OVERLAPPED;
  std::vector<std::vector<Step>> steps(schedule.num_ranks);
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    const auto& actions = schedule.rank_actions[rank];
    const auto end = static_cast<int32_t>(actions.size());
    for (int32_t position : semantics.update_positions[rank]) {
      const Action& action = actions[position];
      Step step;
      step.stage = action.stage;
      step.update = semantics.uses[action.stage][action.microbatch].update;
      if (schedule.flush) {
        step.reduce_after = overlapped ? position : end - 1;
        step.before = end;
      } else {
        step.reduce_after = position;
        step.before = overlapped
                          ? FirstReader(schedule, semantics, rank, action.stage,
                                        step.update + 1, position + 1)
                          : position + 1;
      }
      steps[rank].push_back(step);
    }
    std::stable_sort(
        steps[rank].begin(), steps[rank].end(),
        [](const Step& a, const Step& b) { return a.before < b.before; });
  }
  return steps;
}

}  // namespace weir
