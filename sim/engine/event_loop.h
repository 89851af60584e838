// SPDX-License-Identifier: Apache-2.0
// Replays a task graph: timers in an event loop, flows that share links on
// SimGrid. Used by both drivers, RunTaskGraph and GraphRunner.
//
// A flow that is the only one to move bytes on each of its links gets the full
// rate of its slowest link and does not affect the rates of other flows. With
// max-min fairness it is therefore equivalent to a timer. When another flow
// comes to one of its links, both become SimGrid flows with their remaining
// bytes and stay so until they end. SimGrid thus knows all flows that share a
// link at any time, and shares these links max-min fairly.
#ifndef WEIR_SIM_ENGINE_EVENT_LOOP_H_
#define WEIR_SIM_ENGINE_EVENT_LOOP_H_

#include <atomic>
#include <cstdint>
#include <span>

#include "scenarios/cluster/network.h"
#include "sim/engine/engine.h"
#include "sim/engine/platform.h"
#include "sim/engine/task_graph.h"

namespace weir::sim {

// Writes all times and the number of tasks that have ended; the times of tasks
// that wait forever are NaN. `num_ended` is updated now and then for other
// processes. Requires: the recording is new.
void RunEventLoop(const TaskGraph& graph,
                  std::span<const scenarios::Link> links, Platform* platform,
                  Recording* recording, std::atomic<int64_t>* num_ended);

}  // namespace weir::sim

#endif  // WEIR_SIM_ENGINE_EVENT_LOOP_H_
