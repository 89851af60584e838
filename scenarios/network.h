// SPDX-License-Identifier: Apache-2.0
// A cluster as directed links and the way between any two GPUs: what the
// engine hands to SimGrid, and what tests compute on their own.
#ifndef WEIR_SCENARIOS_NETWORK_H_
#define WEIR_SCENARIOS_NETWORK_H_

#include <cstdint>
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

class Network {
 public:
  // REQUIRES: ValidateCluster(cluster) is OK.
  explicit Network(const Cluster& cluster);

  // num_gpus devices that are joined by pure latency (textbook mode).
  static Network Textbook(int num_gpus, double hop_seconds);

  int num_gpus() const { return static_cast<int>(gpu_node_.size()); }
  const std::vector<Link>& links() const { return links_; }
  int NodeOf(int gpu) const { return gpu_node_[gpu]; }

  // The way from one GPU to another; empty for a GPU to itself.
  Route RouteBetween(int from, int to) const;

  // The rings that a collective over these GPUs (any order, no repeats) uses
  // at the same time, each carrying an equal part of the data: as many edge-
  // disjoint NVLink cycles as a mesh has, else one ring per NIC between nodes,
  // else one. Deterministic.
  std::vector<Ring> RingsOver(const std::vector<int>& gpus) const;

  // The fields are private to the class; see network.cc.
 private:
  Network() = default;

  Cluster cluster_;
  std::vector<Link> links_;
  std::vector<int32_t> gpu_node_;  // [gpu]
  // network.cc may add what it needs below.
};

}  // namespace weir

#endif  // WEIR_SCENARIOS_NETWORK_H_
