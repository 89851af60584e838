// SPDX-License-Identifier: Apache-2.0
// The times of a task graph in which every flow has its links to itself, from
// one pass over arrays. If no two flows use a link at the same time, these are
// also the times of the max-min fair network. Proof by induction over time: up
// to the time at which the two would first differ, the same flows are in flight
// in both. Each flow is alone on its links, so max-min fairness grants it the
// rate of its slowest link, as here. Hence the next flow or timer to end is the
// same in both, ends at the same time and starts the same tasks. If flows do
// share a link, these times are a lower bound: no flow is faster than
// uncontended, so no task starts or ends earlier.
#ifndef WEIR_SIM_ENGINE_LONGEST_PATH_H_
#define WEIR_SIM_ENGINE_LONGEST_PATH_H_

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "scenarios/cluster/network.h"
#include "sim/engine/engine.h"
#include "sim/engine/task_graph.h"

namespace weir::sim {

// Returns the bytes per second of an uncontended flow, by pair: the rate of its
// slowest link, where a link that the route names k times has a k-th of its
// rate.
std::vector<double> RatesAlone(const TaskGraph& graph,
                               std::span<const scenarios::Link> links);

// Returns the uncontended time of a flow: its latency, then its bytes,
// rounded down.
inline double SecondsAlone(const TaskGraph& graph,
                           std::span<const double> rates, int32_t flow) {
  const int32_t pair = graph.pair(flow);
  return graph.pairs[pair].route.latency_seconds +
         std::floor(graph.amount(flow)) / rates[pair];
}

// Computes when each task starts and ends. Flows take their uncontended
// seconds, timers their own; TaskGraph::slowdowns are ignored. As with
// RunTaskGraph, the recording is incomplete if tasks wait for each other.
// Returns ResourceExhausted if there is not enough memory.
absl::StatusOr<Recording> LongestPath(const TaskGraph& graph,
                                      std::span<const scenarios::Link> links);

// Returns the links over which two flows move bytes at the same time,
// ascending. A flow moves bytes from its start + latency to its end. A flow
// that begins when another ends, up to rounding (1e-13 of the last end), shares
// no link with it.
std::vector<int32_t> SharedLinks(const TaskGraph& graph,
                                 std::span<const scenarios::Link> links,
                                 const Recording& recording);

// Returns when two flows first share a link in this sense, or infinity if they
// never do. Until then these times are those of the network.
double FirstSharedTime(const TaskGraph& graph,
                       std::span<const scenarios::Link> links,
                       const Recording& recording);

// The rest of a graph if these times are accepted until `seconds`: the tasks
// that end at that time or later. Timers release those of them that wait for
// tasks that ended earlier. Flows that have ended can be left out, since they
// met no other flow.
struct RestOfGraph {
  TaskGraph graph;             // with the same pairs and times
  std::vector<int32_t> tasks;  // [its task]: task of the whole; -1: a release
};
RestOfGraph RestAfter(const TaskGraph& graph, const Recording& recording,
                      double seconds);

// Returns true if a timer would be slowed down in these times: a flow touches
// its GPU while it runs, or GPUs are partitions of a physical GPU.
bool SlowsTimers(const TaskGraph& graph, const Recording& recording);

}  // namespace weir::sim

#endif  // WEIR_SIM_ENGINE_LONGEST_PATH_H_
