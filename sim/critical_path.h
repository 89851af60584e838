// SPDX-License-Identifier: Apache-2.0
// What a batch waits for, from its end back to its beginning.
#ifndef WEIR_SIM_CRITICAL_PATH_H_
#define WEIR_SIM_CRITICAL_PATH_H_

#include "sim/engine.h"
#include "sim/pipeline_graph.h"
#include "sim/window.h"

namespace weir {

// Seconds of one batch on a chain of tasks each of which starts when the one
// before it ends: the last task to end, the one that it waited for, and so on.
// They add up to the window's batch_seconds() as far as it begins with a task.
struct PathSeconds {
  double passes = 0;  // with the collectives in them
  double steps = 0;
  double reductions = 0;
  double gathers = 0;
  double transfers = 0;  // between ranks, and to the host and back
};

PathSeconds CriticalPath(const PipelineGraph& graph, const Recording& recording,
                         const Window& window);

}  // namespace weir

#endif  // WEIR_SIM_CRITICAL_PATH_H_
