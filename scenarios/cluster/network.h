// SPDX-License-Identifier: Apache-2.0
// A cluster as directed links, with routes between any two GPUs. The engine
// passes them to SimGrid; tests use them for their own calculations.
#ifndef WEIR_SCENARIOS_CLUSTER_NETWORK_H_
#define WEIR_SCENARIOS_CLUSTER_NETWORK_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "scenarios/cluster/cluster.pb.h"
#include "scenarios/cluster/dragonfly.h"

namespace weir::scenarios {

// One direction of a physical link. All flows on it share it max-min fairly.
struct Link {
  std::string name;  // "node3.nic0.tx"
  double bytes_per_second = 0;
};

// The route of a transfer. Without links nothing on the route limits its
// bandwidth (a hop of pure latency).
struct Route {
  std::vector<int32_t> links;  // indices of Network::links, without repeats
  double latency_seconds = 0;
};

// A ring of a collective: GPUs in ring order. A ring over n GPUs has n directed
// hops, including the one that closes it.
struct Ring {
  std::vector<int32_t> gpus;
};

// The connection between two GPUs: a switch that may support reductions,
// point-to-point NVLinks, PCIe, or the network between nodes.
enum class Wire { kNone, kNvSwitch, kNvLink, kPcie, kNetwork };

struct NodeWiring;  // scenarios/cluster/node_wiring.h

class Network {
 public:
  // Requires: ValidateCluster(cluster) is OK.
  explicit Network(const Cluster& cluster);

  // Returns the network of given costs: num_gpus devices in node 0 with pure
  // latency between them.
  static Network OfGivenCosts(int num_gpus, double hop_seconds);

  int num_gpus() const { return static_cast<int>(gpu_node_.size()); }
  const std::vector<Link>& links() const { return links_; }
  int NodeOf(int gpu) const { return gpu_node_[gpu]; }

  // Returns the route from one GPU to another; empty from a GPU to itself.
  // Takes a few lookups, because a table of all pairs would be too large.
  Route RouteBetween(int from, int to) const;

  // Returns kNone with given costs and for a GPU to itself.
  Wire WireBetween(int from, int to) const;

  // Returns true if the GPUs' nodes are under the same leaf switch.
  bool SameLeaf(int from, int to) const;

  // Return the routes between a GPU and its node's memory: over its PCIe switch
  // to the root complex, and back. Empty if the cluster does not describe PCIe.
  Route RouteToHost(int gpu) const;
  Route RouteFromHost(int gpu) const;

  // Returns the rings that a collective over these GPUs (any order, no repeats)
  // uses concurrently, each for an equal part of the data: inside a node as
  // many edge-disjoint NVLink cycles as a mesh has, otherwise one ring; between
  // nodes one ring per NIC. Returns no rings for fewer than two GPUs.
  // Deterministic.
  std::vector<Ring> RingsOver(const std::vector<int>& gpus) const;

 private:
  // A node: the index of its wiring, its first GPU and its first link.
  struct Place {
    int32_t group = 0;
    int32_t first_gpu = 0;
    int32_t first_link = 0;
  };
  // The members of a collective in a node, numbered within the node.
  struct Members {
    int node = 0;
    std::vector<int> gpus;
  };

  Network() = default;
  void AddLeafSwitches(const Cluster& cluster);
  void AddDragonfly(const Cluster& cluster);
  void AppendWayBetweenNodes(int from, int to, Route& route) const;
  // The two ends of a message between nodes.
  struct FabricPath {
    int from_gpu = 0, to_gpu = 0;
    uint32_t from_rail = 0, to_rail = 0;
  };
  static uint64_t HashOf(const FabricPath& path);  // of the two GPUs
  void AppendFabric(const FabricPath& path, Route& route) const;
  // Returns the link of a leaf switch and rail to the spine that the message
  // takes.
  int32_t UplinkOf(int leaf, uint32_t rail, int spine) const;
  int SpineOf(const FabricPath& path, int from_leaf, int to_leaf) const;
  std::vector<Members> MembersByNode(const std::vector<int>& gpus) const;
  // CommonRails returns the rails that members in every node use. FewestNics
  // returns the smallest number of NICs that the members of any node use.
  std::vector<uint32_t> CommonRails(const std::vector<Members>& members) const;
  size_t FewestNics(const std::vector<Members>& members) const;
  std::vector<Ring> RingsBetweenNodes(
      const std::vector<Members>& members) const;

  Fabric fabric_;
  double hop_seconds_ = 0;
  std::vector<Link> links_;
  std::vector<int32_t> gpu_node_;  // [gpu]
  std::vector<Place> nodes_;       // empty with given costs
  std::vector<std::shared_ptr<const NodeWiring>> wiring_;  // [group]
  std::vector<uint32_t> leaf_rails_;  // rails with leaf links, ascending
  int32_t first_leaf_link_ = 0;
  // Links of a leaf switch (and rail) to the spine, in one direction, and how
  // many of them have failed: the first ones. One if messages are spread
  // evenly.
  int num_uplinks_ = 1;
  std::map<int, int> failed_uplinks_;  // by leaf
  DragonflyLinks dragonfly_;           // empty: no dragonfly
};

}  // namespace weir::scenarios

#endif  // WEIR_SCENARIOS_CLUSTER_NETWORK_H_
