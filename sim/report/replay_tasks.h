// SPDX-License-Identifier: Apache-2.0
// A finished run as arrays, from which it is replayed with other durations.
#ifndef WEIR_SIM_REPORT_REPLAY_TASKS_H_
#define WEIR_SIM_REPORT_REPLAY_TASKS_H_

#include <cstdint>
#include <string>
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
    // Part of its time that is fused attention; 0 if kernels are not known.
    double attention_part = 0;
  };
  // Bytes that move over links: of a transfer, or of a hop of a collective.
  struct Flow {
    int32_t task = 0;
    int32_t from = 0, to = 0;  // GPUs of the cluster
    int32_t number = 0;        // among the flows of these two
    int32_t pair = 0;          // index into pair_links
  };
  // start + seconds is the recorded end, to the last bit.
  std::vector<double> seconds;                // [task]
  std::vector<int32_t> first_before, before;  // [task], [task + 1]
  std::vector<Pass> passes;                   // of all GPUs
  std::vector<Flow> flows;
  std::vector<std::vector<std::string>> pair_links;  // names of their links
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

// `window`: that of the recording. Requires: the recording is complete.
ReplayTasks ReplayTasksOf(const PipelineInputs& inputs,
                          const PipelineGraph& graph,
                          const Recording& recording, const Window& window);

}  // namespace weir::sim

#endif  // WEIR_SIM_REPORT_REPLAY_TASKS_H_
