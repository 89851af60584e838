// SPDX-License-Identifier: Apache-2.0
// A task graph in which everybody has the links for himself: one pass over
// arrays. Where in these times no two flows meet on a link, they are those of
// the max-min fair network too, by induction over time: up to the moment at
// which the two would first differ the same flows are under way in both. Each
// is alone on its links, so that max-min fairness gives it what its slowest
// link has, which is what it has here; so the next flow or timer to end is the
// same in both, ends at the same time and starts the same tasks. Where flows do
// meet these times are a lower bound: no flow is ever faster than alone, and so
// no task starts or ends earlier.
#ifndef WEIR_SIM_LONGEST_PATH_H_
#define WEIR_SIM_LONGEST_PATH_H_

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "scenarios/network.h"
#include "sim/engine.h"
#include "sim/task_graph.h"

namespace weir {

// [pair] Bytes per second of a flow that is alone: over the slowest link, of
// which it has a k-th where its route names it k times.
std::vector<double> RatesAlone(const TaskGraph& graph,
                               std::span<const Link> links);

// Of a flow: its latency and then its bytes, whole ones.
inline double SecondsAlone(const TaskGraph& graph,
                           std::span<const double> rates, int32_t flow) {
  const int32_t pair = graph.pair(flow);
  return graph.pairs[pair].route.latency_seconds +
         std::floor(graph.amount(flow)) / rates[pair];
}

// When each task starts and ends. Flows take their seconds alone, timers
// theirs: nothing of TaskGraph::slowdowns happens. Incomplete as RunTaskGraph's
// where tasks wait for each other. ResourceExhausted without memory.
absl::StatusOr<Recording> LongestPath(const TaskGraph& graph,
                                      std::span<const Link> links);

// Links over which two flows move bytes at one time, ascending: each from its
// start + latency to its end. To touch is not to meet, up to the rounding of
// times (1e-13 of the last end).
std::vector<int32_t> SharedLinks(const TaskGraph& graph,
                                 std::span<const Link> links,
                                 const Recording& recording);

// When first two flows meet so; infinity: never. Until then these times are
// those of the network.
double FirstMeeting(const TaskGraph& graph, std::span<const Link> links,
                    const Recording& recording);

// What is left of a graph when these times are taken for granted until
// `seconds`: tasks that end later. Those that start earlier, or wait for nobody
// of the rest, are released when they start. Flows that have ended need not be
// there, since they met nobody.
struct RestOfGraph {
  TaskGraph graph;             // with the same pairs, at the same times
  std::vector<int32_t> tasks;  // [its task] of the whole, below 0: a release
};
RestOfGraph RestAfter(const TaskGraph& graph, const Recording& recording,
                      double seconds);

// Whether something would slow a timer down in these times: a flow that touches
// its GPU while it runs; or at all, where GPUs are parts of cards.
bool SlowsTimers(const TaskGraph& graph, const Recording& recording);

}  // namespace weir

#endif  // WEIR_SIM_LONGEST_PATH_H_
