// SPDX-License-Identifier: Apache-2.0
#include "sim/report/critical_path.h"

#include <algorithm>
#include <vector>

namespace weir::sim {
namespace {

// Returns, for each task, a predecessor that it waited for until it started.
std::vector<int32_t> LastPredecessors(const TaskGraph& tasks,
                                      const Recording& recording) {
  const auto start = recording.start_seconds();
  const auto end = recording.end_seconds();
  std::vector<int32_t> last(tasks.num_tasks(), PipelineGraph::kNone);
  for (int32_t task = 0; task < tasks.num_tasks(); ++task) {
    for (int32_t next : tasks.successors(task)) {
      if (end[task] < start[next] * (1 - 1e-12)) continue;
      // If there are several, prefer one that itself took time.
      const int32_t known = last[next];
      if (known == PipelineGraph::kNone || start[task] < start[known])
        last[next] = task;
    }
  }
  return last;
}

double SecondsIn(const Window& window, const Recording& recording,
                 int32_t task) {
  return std::min(recording.end_seconds()[task], window.end_seconds) -
         std::max(recording.start_seconds()[task], window.begin_seconds);
}

double& KindOf(const PipelineGraph& graph, int32_t task, PathSeconds* path) {
  if (task < graph.ranges.end_of_actions && !graph.tasks.is_timer(task)) {
    return path->transfers;
  }
  if (task < graph.ranges.end_of_passes) return path->passes;
  if (task < graph.ranges.end_of_steps) return path->steps;
  if (task < graph.ranges.end_of_reductions) return path->reductions;
  if (task < graph.ranges.end_of_gathers) return path->gathers;
  return path->transfers;
}

}  // namespace

std::vector<int32_t> CriticalTasks(const PipelineGraph& graph,
                                   const Recording& recording,
                                   const Window& window) {
  std::vector<int32_t> tasks;
  const auto end = recording.end_seconds();
  if (end.empty()) return tasks;
  const std::vector<int32_t> last = LastPredecessors(graph.tasks, recording);
  for (auto task = static_cast<int32_t>(
           std::max_element(end.begin(), end.end()) - end.begin());
       task != PipelineGraph::kNone; task = last[task]) {
    if (SecondsIn(window, recording, task) > 0) tasks.push_back(task);
  }
  return tasks;
}

PathSeconds CriticalPath(const PipelineGraph& graph, const Recording& recording,
                         const Window& window) {
  PathSeconds path;
  for (const int32_t task : CriticalTasks(graph, recording, window)) {
    KindOf(graph, task, &path) +=
        SecondsIn(window, recording, task) / window.num_batches;
  }
  return path;
}

}  // namespace weir::sim
