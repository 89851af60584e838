// SPDX-License-Identifier: Apache-2.0
#include "sim/report/batch_ends.h"

#include <algorithm>

#include "schedules/action.h"

namespace weir::sim {

std::vector<int32_t> LastActionsOf(const schedules::Schedule& schedule,
                                   int rank) {
  std::vector<int32_t> last(schedule.num_batches, -1);
  const auto& actions = schedule.rank_actions[rank];
  for (size_t i = 0; i < actions.size(); ++i) {
    if (!schedules::IsCompute(actions[i].op)) continue;
    if (actions[i].op == schedules::Op::kForward && !schedule.forward_only) {
      continue;
    }
    last[actions[i].microbatch / schedule.num_microbatches] =
        static_cast<int32_t>(i);
  }
  for (size_t batch = 1; batch < last.size(); ++batch) {
    last[batch] = std::max(last[batch], last[batch - 1]);
  }
  return last;
}

std::vector<std::vector<int32_t>> BatchEndTasks(
    const schedules::Schedule& schedule, const PipelineGraph& graph) {
  std::vector<std::vector<int32_t>> tasks(schedule.num_batches);
  const int last_stage = schedule.num_stages - 1;
  for (const int rank :
       schedule.RanksOf(schedule.forward_only ? last_stage : 0)) {
    const std::vector<int32_t> last = LastActionsOf(schedule, rank);
    for (size_t batch = 0; batch < last.size(); ++batch) {
      if (last[batch] < 0) continue;
      tasks[batch].push_back(graph.ActionEnd(rank * graph.tensor, last[batch]));
    }
  }
  return tasks;
}

}  // namespace weir::sim
