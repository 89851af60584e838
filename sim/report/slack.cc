// SPDX-License-Identifier: Apache-2.0
#include "sim/report/slack.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "base/quantiles.h"
#include "sim/engine/longest_path.h"
#include "sim/report/critical_slack.h"
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

SlackStatistics StatisticsOfSlack(std::vector<double> slack,
                                  double makespan_seconds) {
  std::sort(slack.begin(), slack.end());
  const auto critical = std::upper_bound(slack.begin(), slack.end(),
                                         CriticalSlack(makespan_seconds));
  // Rounding errors are no slack.
  std::fill(slack.begin(), critical, 0.0);
  return {static_cast<int>(slack.size()),
          static_cast<int>(critical - slack.begin()),
          QuantileOfSorted(slack, 0.5), slack.back()};
}

void FillSlack(const ScheduleSlack& slack, Result* result) {
  // [rank, transfers after passes, name]
  std::map<std::tuple<int, bool, std::string>, std::vector<double>> groups;
  for (const PassSlack& pass : slack.passes) {
    if (pass.replica != 0) continue;
    groups[{pass.rank, false, {schedules::Letter(pass.action.op)}}].push_back(
        pass.slack_seconds);
  }
  for (const TransferSlack& transfer : slack.transfers) {
    if (transfer.replica != 0) continue;
    groups[{transfer.rank, true, transfer.gradient ? "send B" : "send F"}]
        .push_back(transfer.slack_seconds);
  }
  RunSlack* all = result->mutable_run_slack();
  all->set_is_exact(slack.is_exact);
  for (auto& [key, seconds] : groups) {
    const SlackStatistics statistics =
        StatisticsOfSlack(std::move(seconds), slack.makespan_seconds);
    RunSlack::Row* row = all->add_rows();
    row->set_rank(std::get<0>(key));
    row->set_what(std::get<2>(key));
    row->set_count(statistics.count);
    row->set_num_critical(statistics.num_critical);
    row->set_median_seconds(statistics.median_seconds);
    row->set_largest_seconds(statistics.largest_seconds);
  }
}

}  // namespace weir::sim
