// SPDX-License-Identifier: Apache-2.0
#include "tests/oracle.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/oracle_graph.h"

namespace weir::oracle {
namespace {

absl::Status Deadlock(const schedules::Schedule& schedule,
                      const Builder& builder, const Graph& graph) {
  std::string stuck;
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    const auto& actions = schedule.rank_actions[rank];
    for (int i = 0; i < static_cast<int>(actions.size()); ++i) {
      if (graph.nodes[builder.NodeOf({rank, i})].has_run) continue;
      absl::StrAppend(&stuck, stuck.empty() ? "" : ", ", "rank ", rank,
                      " at position ", i, " (", schedules::ToString(actions[i]),
                      ")");
      break;
    }
  }
  return absl::FailedPreconditionError(
      absl::StrCat("deadlock: stuck are ", stuck));
}

// Returns the largest count over the start times of all forwards and reloads.
double PeakMicrobatches(const schedules::Schedule& schedule, int rank,
                        const std::vector<double>& start,
                        const std::vector<double>& end) {
  const auto& actions = schedule.rank_actions[rank];
  int share = 1;
  for (const auto& route : schedule.routes) {
    share = std::max(
        share, static_cast<int>(std::count(route.begin(), route.end(), rank)));
  }
  int peak = 0;
  for (size_t i = 0; i < actions.size(); ++i) {
    if (actions[i].op != schedules::Op::kForward &&
        actions[i].op != schedules::Op::kReload)
      continue;
    // A pass of zero duration starts and ends at the same time, so the order of
    // the actions decides.
    int now = 0;
    for (size_t k = 0; k < actions.size(); ++k) {
      const bool takes = actions[k].op == schedules::Op::kForward ||
                         actions[k].op == schedules::Op::kReload;
      const bool frees = actions[k].op == schedules::Op::kOffload ||
                         IsBackward(actions[k]) ||
                         (schedule.forward_only && takes);
      const int n = actions[k].num_microbatches;
      if (takes && (start[k] < start[i] || (start[k] == start[i] && k <= i))) {
        now += n;
      }
      if (frees && end[k] <= start[i] && k != i) now -= n;
    }
    peak = std::max(peak, now);
  }
  return static_cast<double>(peak) / share;
}

}  // namespace

Costs EqualStages(const schedules::Schedule& schedule, double forward_seconds,
                  double backward_seconds) {
  const int n = schedule.num_stages;
  Costs costs;
  costs.forward_seconds.assign(n, forward_seconds);
  costs.backward_seconds.assign(n, backward_seconds);
  costs.backward_input_seconds.assign(n, backward_seconds / 2);
  costs.backward_weight_seconds.assign(n, backward_seconds / 2);
  return costs;
}

absl::StatusOr<Timing> Evaluate(const schedules::Schedule& schedule,
                                const Costs& costs, Transfers transfers) {
  Builder builder(schedule, costs, transfers);
  Graph graph = builder.Build();
  if (graph.Run() > 0) return Deadlock(schedule, builder, graph);
  Timing timing;
  for (const Node& node : graph.nodes) {
    timing.makespan_seconds = std::max(timing.makespan_seconds, node.end());
  }
  timing.start_seconds.resize(schedule.num_ranks);
  timing.end_seconds.resize(schedule.num_ranks);
  timing.busy_seconds.assign(schedule.num_ranks, 0);
  timing.update_seconds.assign(schedule.num_ranks, 0);
  for (const auto& [rank, node] : builder.updates()) {
    timing.update_seconds[rank] += graph.nodes[node].seconds;
  }
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    std::vector<double>& starts = timing.start_seconds[rank];
    std::vector<double>& ends = timing.end_seconds[rank];
    const int num_actions =
        static_cast<int>(schedule.rank_actions[rank].size());
    for (int i = 0; i < num_actions; ++i) {
      const Node& node = graph.nodes[builder.NodeOf({rank, i})];
      starts.push_back(node.start);
      ends.push_back(node.end());
      const schedules::Action& action = schedule.rank_actions[rank][i];
      if (IsTransferToHost(action) || action.overlaps_next) continue;
      timing.busy_seconds[rank] += node.seconds;
    }
    timing.idle_seconds.push_back(timing.makespan_seconds -
                                  timing.busy_seconds[rank] -
                                  timing.update_seconds[rank]);
    timing.span_seconds.push_back(
        starts.empty() ? 0
                       : *std::max_element(ends.begin(), ends.end()) -
                             *std::min_element(starts.begin(), starts.end()));
    timing.peak_microbatches.push_back(
        PeakMicrobatches(schedule, rank, starts, ends));
  }
  return timing;
}

}  // namespace weir::oracle
