// SPDX-License-Identifier: Apache-2.0
// A finished run as arrays, from which it is replayed with other durations.
#ifndef WEIR_SIM_REPORT_REPLAY_TASKS_H_
#define WEIR_SIM_REPORT_REPLAY_TASKS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "schedules/action.h"
#include "schedules/schedule.h"
#include "sim/engine/engine.h"
#include "sim/engine/task_graph.h"
#include "sim/graph/pipeline_graph.h"
#include "sim/report/window.h"

namespace weir::sim {

// Returns the tasks in an order in which none precedes one that it waits for.
// Ends would not do: tasks of zero seconds end together.
std::vector<int32_t> TopologicalOrder(const TaskGraph& graph);

// Tasks are numbered in topological order. A task starts when those before it
// have ended, and takes its recorded seconds.
struct ReplayTasks {
  struct Pass {
    int32_t task = 0;  // of its kernels
    int32_t gpu = 0, replica = 0, tensor_rank = 0;
    schedules::Action action{};
  };
  // start + seconds is the recorded end, to the last bit.
  std::vector<double> seconds;                // [task]
  std::vector<int32_t> first_before, before;  // [task], [task + 1]
  std::vector<Pass> passes;                   // of all GPUs
  double makespan_seconds = 0;
  // The step time is that of Window: the last end of end_tasks (if empty: of
  // all tasks) - the last end of begin_tasks (if empty: 0), divided by
  // num_batches, + rollback_seconds.
  std::vector<int32_t> begin_tasks, end_tasks;
  int num_batches = 1;
  double rollback_seconds = 0, batch_seconds = 0;
  int simulated_batches = 1;
  int chunks = 1;  // stages of a rank
  // False: flows share links or slow passes down, so that other durations of
  // passes would change those of other tasks.
  bool is_exact = true;
};

// `window`: that of the recording; `links`: those of the network. Requires: the
// recording is complete.
ReplayTasks ReplayTasksOf(const schedules::Schedule& schedule,
                          const PipelineGraph& graph,
                          const Recording& recording, const Window& window,
                          std::span<const scenarios::Link> links);

}  // namespace weir::sim

#endif  // WEIR_SIM_REPORT_REPLAY_TASKS_H_
