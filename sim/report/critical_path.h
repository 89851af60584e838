// SPDX-License-Identifier: Apache-2.0
// The critical path of a batch, followed from its end to its beginning.
#ifndef WEIR_SIM_REPORT_CRITICAL_PATH_H_
#define WEIR_SIM_REPORT_CRITICAL_PATH_H_

#include <cstdint>
#include <vector>

#include "sim/engine/engine.h"
#include "sim/graph/pipeline_graph.h"
#include "sim/report/window.h"

namespace weir::sim {

// Seconds of one batch on a chain of tasks in which each task starts when the
// previous one ends: the last task to end, the task that it waited for, and so
// on. They add up to the window's batch_seconds() if the chain reaches back to
// the start of the window.
struct PathSeconds {
  double passes = 0;  // including the collectives inside them
  double steps = 0;
  double reductions = 0;
  double gathers = 0;
  double transfers = 0;  // between ranks, and to and from the host
};

// Returns the tasks of the chain that take time within the window, last first.
std::vector<int32_t> CriticalTasks(const PipelineGraph& graph,
                                   const Recording& recording,
                                   const Window& window);

PathSeconds CriticalPath(const PipelineGraph& graph, const Recording& recording,
                         const Window& window);

}  // namespace weir::sim

#endif  // WEIR_SIM_REPORT_CRITICAL_PATH_H_
