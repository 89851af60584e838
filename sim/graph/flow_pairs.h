// SPDX-License-Identifier: Apache-2.0
// The pairs of a task graph over which flows run: one per pair of GPUs, or one
// per color of a symmetry reduction.
#ifndef WEIR_SIM_GRAPH_FLOW_PAIRS_H_
#define WEIR_SIM_GRAPH_FLOW_PAIRS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_map.h"
#include "scenarios/cluster/network.h"
#include "sim/engine/task_graph.h"
#include "sim/graph/group.h"

namespace weir::sim {

class Symmetry;  // sim/graph/symmetry.h

// Routes between GPUs, each computed once.
class RouteCache {
 public:
  explicit RouteCache(const scenarios::Network& network) : network_(network) {}

  const scenarios::Route& Of(int from, int to) {
    const auto [at, added] = routes_.try_emplace({from, to});
    if (added) at->second = network_.RouteBetween(from, to);
    return at->second;
  }

 private:
  const scenarios::Network& network_;
  absl::node_hash_map<std::pair<int, int>, scenarios::Route> routes_;
};

// Returns the seconds that one byte needs on the slowest link of the route.
double SecondsPerByte(const scenarios::Network& network,
                      const scenarios::Route& route);

// Adds pairs to a task graph. Pairs are indices into TaskGraph::pairs.
class FlowPairs {
 public:
  virtual ~FlowPairs() = default;

  // Returns the pair of a transfer with this latency.
  virtual int32_t OfSend(int from, int to, double latency_seconds,
                         const InstanceRole& role) = 0;
  // Returns the pair of a GPU and its host's memory; -1: not joined by links.
  virtual int32_t OfHost(int gpu, bool to_host, const InstanceRole& role) = 0;
  // Returns a group with everything except its communicator.
  virtual Group OfGroup(const std::vector<int>& gpus,
                        const InstanceRole& role) = 0;

  // Returns the seconds per byte over the pair's links if it is certain that
  // flows of no other role cross them.
  virtual std::optional<double> SecondsPerByteAlone(int32_t pair) const = 0;
  // Records that the flows of a collective of this Group::hop_set begin with
  // the task `first_flow`.
  virtual void AddCollective(int32_t hop_set, int32_t first_flow) = 0;
  // See CommunicationLowering.
  virtual void MergeHops() = 0;
  virtual std::vector<Slowdowns::Touch> Touches() const = 0;

 protected:
  explicit FlowPairs(TaskGraph* tasks) : tasks_(tasks) {}

  // SimGrid has one latency between two hosts, so a GPU has a host for each
  // latency of its flows. Returns the number of the latency.
  int HostOf(double latency_seconds);
  // Returns the pair of (from, to, host), and true if its route must be added.
  std::pair<int32_t, bool> Find(int from, int to, int host);

  TaskGraph* const tasks_;

 private:
  std::vector<double> latencies_;
  absl::flat_hash_map<std::tuple<int, int, int>, int32_t> pair_index_;
};

// Makes pairs of GPUs, for a graph with all GPUs. Ignores roles. The hops of
// groups have latencies if `hops_take_latency`.
std::unique_ptr<FlowPairs> MakeFullPairs(const scenarios::Network& network,
                                         bool hops_take_latency,
                                         RouteCache* routes, TaskGraph* tasks);
// Makes pairs of colors, for a graph of representatives. Finds them by role.
std::unique_ptr<FlowPairs> MakeReducedPairs(const Symmetry& symmetry,
                                            bool hops_take_latency,
                                            TaskGraph* tasks);

}  // namespace weir::sim

#endif  // WEIR_SIM_GRAPH_FLOW_PAIRS_H_
