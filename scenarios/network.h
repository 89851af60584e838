// SPDX-License-Identifier: Apache-2.0
// A cluster as directed links and the way between any two GPUs: what the
// engine hands to SimGrid, and what tests compute on their own.
#ifndef WEIR_SCENARIOS_NETWORK_H_
#define WEIR_SCENARIOS_NETWORK_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "scenarios/cluster.pb.h"

namespace weir {

// One direction of a physical link. All flows on it share it max-min fairly.
struct Link {
  std::string name;  // "node3.nic0.tx"
  double bytes_per_second = 0;
};

// The way of a transfer. No links: nothing on the way can limit it (a hop of
// pure latency).
struct Route {
  std::vector<int32_t> links;  // indices of Network::links, each at most once
  double latency_seconds = 0;
};

// One ring of a collective: GPUs in the order of the ring. A ring over n GPUs
// has n directed hops, the last one closes it.
struct Ring {
  std::vector<int32_t> gpus;
};

// What joins two GPUs: a switch that may reduce, NVLinks from GPU to GPU, PCIe,
// the network between nodes.
enum class Wire { kNone, kNvSwitch, kNvLink, kPcie, kNetwork };

struct NodeWiring;  // scenarios/node_wiring.h

class Network {
 public:
  // REQUIRES: ValidateCluster(cluster) is OK.
  explicit Network(const Cluster& cluster);

  // num_gpus devices that are joined by pure latency (textbook mode), all in
  // node 0.
  static Network Textbook(int num_gpus, double hop_seconds);

  int num_gpus() const { return static_cast<int>(gpu_node_.size()); }
  const std::vector<Link>& links() const { return links_; }
  int NodeOf(int gpu) const { return gpu_node_[gpu]; }

  // The way from one GPU to another; empty for a GPU to itself. Costs a few
  // look-ups: no table holds all pairs.
  Route RouteBetween(int from, int to) const;

  // kNone in textbook mode and for a GPU to itself.
  Wire WireBetween(int from, int to) const;

  // Whether their nodes have a leaf switch in common.
  bool SameLeaf(int from, int to) const;

  // The way between a GPU and its node's memory: over its PCIe switch to the
  // root complex, or back. Empty where the cluster says nothing of PCIe.
  Route RouteToHost(int gpu) const;
  Route RouteFromHost(int gpu) const;

  // The rings that a collective over these GPUs (any order, no repeats) uses
  // at the same time, each carrying an equal part of the data: as many edge-
  // disjoint NVLink cycles as a mesh has, else one ring per NIC between nodes,
  // else one. None for fewer than two GPUs. Deterministic.
  std::vector<Ring> RingsOver(const std::vector<int>& gpus) const;

 private:
  // One node: which wiring it has, and where its GPUs and links begin.
  struct Place {
    int32_t group = 0;
    int32_t first_gpu = 0;
    int32_t first_link = 0;
  };
  // The members of a collective in one node, numbered inside the node.
  struct Members {
    int node = 0;
    std::vector<int> gpus;
  };

  Network() = default;
  void AddLeafSwitches(const Cluster& cluster);
  void AppendWayBetweenNodes(int from, int to, Route& route) const;
  void AppendFabric(int from_node, int to_node, uint32_t rail,
                    Route& route) const;
  std::vector<Members> MembersByNode(const std::vector<int>& gpus) const;
  // Rails that members in every node use; NICs that members of one node use, at
  // the fewest.
  std::vector<uint32_t> CommonRails(const std::vector<Members>& members) const;
  size_t FewestNics(const std::vector<Members>& members) const;
  std::vector<Ring> RingsBetweenNodes(
      const std::vector<Members>& members) const;

  Fabric fabric_;
  double textbook_hop_seconds_ = 0;
  std::vector<Link> links_;
  std::vector<int32_t> gpu_node_;                          // [gpu]
  std::vector<Place> nodes_;                               // empty: textbook
  std::vector<std::shared_ptr<const NodeWiring>> wiring_;  // [group]
  std::vector<uint32_t> leaf_rails_;  // rails that have leaf links, ascending
  int32_t first_leaf_link_ = 0;
};

}  // namespace weir

#endif  // WEIR_SCENARIOS_NETWORK_H_
