// SPDX-License-Identifier: Apache-2.0
// Replays a task graph: timers by an event loop, flows that share links on
// SimGrid. Both drivers, RunTaskGraph and GraphRunner, do this and nothing
// else.
//
// A flow that moves bytes while nobody else does on any of its links has its
// slowest link for itself, and leaves the rates of all others as if it were not
// there: that is what max-min fairness gives, and is a timer. The moment at
// which another one comes to one of its links both become SimGrid's, with the
// bytes that are left, and stay there until they end. So SimGrid knows all
// flows that share a link at any moment, and shares these links max-min fairly.
#ifndef WEIR_SIM_REPLAY_H_
#define WEIR_SIM_REPLAY_H_

#include <atomic>
#include <cstdint>
#include <span>

#include "scenarios/network.h"
#include "sim/engine.h"
#include "sim/platform.h"
#include "sim/task_graph.h"

namespace weir {

// Writes all times and how many tasks have ended; those that wait for ever are
// NaN. `num_ended` follows roughly, for others to see. REQUIRES: the recording
// is new.
void ReplayGraph(const TaskGraph& graph, std::span<const Link> links,
                 Platform* platform, Recording* recording,
                 std::atomic<int64_t>* num_ended);

}  // namespace weir

#endif  // WEIR_SIM_REPLAY_H_
