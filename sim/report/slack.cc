// SPDX-License-Identifier: Apache-2.0
#include "sim/report/slack.h"

#include <algorithm>

#include "sim/engine/longest_path.h"
#include "sim/report/replay_tasks.h"

namespace weir::sim {
std::vector<double> SlackOfTasks(const TaskGraph& graph,
                                 const Recording& recording) {
  const auto start = recording.start_seconds();
  const auto end = recording.end_seconds();
  const double makespan =
      end.empty() ? 0 : *std::max_element(end.begin(), end.end());
  std::vector<double> slack(graph.num_tasks());
  const std::vector<int32_t> order = TopologicalOrder(graph);
  for (auto task = order.rbegin(); task != order.rend(); ++task) {
    double latest = makespan - end[*task];
    for (const int32_t next : graph.successors(*task)) {
      // The next task may wait for others.
      latest = std::min(latest, slack[next] + (start[next] - end[*task]));
    }
    slack[*task] = std::max(latest, 0.0);
  }
  return slack;
}

ScheduleSlack SlackOfRun(const schedules::Schedule& schedule,
                         const PipelineGraph& graph, const Recording& recording,
                         std::span<const scenarios::Link> links) {
  const std::vector<double> slack = SlackOfTasks(graph.tasks, recording);
  const auto start = recording.start_seconds();
  const auto end = recording.end_seconds();
  ScheduleSlack all;
  all.makespan_seconds =
      end.empty() ? 0 : *std::max_element(end.begin(), end.end());
  all.is_exact = SharedLinks(graph.tasks, links, recording).empty() &&
                 !SlowsTimers(graph.tasks, recording);
  for (int gpu = 0; gpu < graph.num_gpus(); ++gpu) {
    if (gpu % graph.tensor != 0) continue;
    const int rank = graph.rank_of(gpu), replica = graph.replica_of(gpu);
    const auto& actions = schedule.rank_actions[rank];
    for (size_t i = 0; i < actions.size(); ++i) {
      const schedules::Action& action = actions[i];
      if (action.op > schedules::Op::kBackwardWeight) continue;
      const int position = static_cast<int>(i);
      const int32_t first = graph.ActionTask(gpu, position);
      const int32_t last = graph.ActionEnd(gpu, position);
      // The collectives inside a pass follow its timer.
      all.passes.push_back(
          {gpu, replica, rank, action, start[first], end[last], slack[first]});
      const int32_t transfer = graph.OutboundTransfer(gpu, action);
      if (transfer == PipelineGraph::kNone) continue;
      all.transfers.push_back({gpu, replica, rank,
                               action.op != schedules::Op::kForward,
                               action.stage, action.microbatch, start[transfer],
                               end[transfer], slack[transfer]});
    }
  }
  std::stable_sort(all.transfers.begin(), all.transfers.end(),
                   [](const TransferSlack& a, const TransferSlack& b) {
                     return a.start_seconds < b.start_seconds;
                   });
  return all;
}

}  // namespace weir::sim
