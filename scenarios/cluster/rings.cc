// SPDX-License-Identifier: Apache-2.0
// Implements Network::RingsOver.
#include <algorithm>
#include <cassert>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "scenarios/cluster/disjoint_cycles.h"
#include "scenarios/cluster/network.h"
#include "scenarios/cluster/node_wiring.h"

namespace weir::scenarios {
namespace {

// Returns the cyclic orders in which a collective may visit these GPUs of a
// node, all concurrently: both directions of every NVLink cycle, otherwise PCIe
// order.
std::vector<std::vector<int>> OrdersInside(const NodeWiring& wiring,
                                           const std::vector<int>& gpus) {
  std::vector<std::vector<int>> orders;
  if (!wiring.mesh_lanes.empty()) {
    const int size = static_cast<int>(gpus.size());
    std::vector<int32_t> lanes(size_t{1} * size * size);
    for (int a = 0; a < size; ++a) {
      for (int b = 0; b < size; ++b) {
        lanes[a * size + b] =
            wiring.mesh_lanes[gpus[a] * wiring.num_gpus() + gpus[b]];
      }
    }
    for (std::vector<int>& cycle : DisjointCycles(size, std::move(lanes))) {
      for (int& vertex : cycle) vertex = gpus[vertex];
      orders.push_back(cycle);
      std::reverse(cycle.begin() + 1, cycle.end());
      orders.push_back(cycle);
    }
  }
  if (orders.empty()) orders.push_back(InPcieOrder(wiring, gpus));
  return orders;
}

// The path of a ring through a node, from the entry GPU to the exit GPU.
using NodePath = std::vector<int>;

// The required entry or exit of a ring: it enters by a rail, or leaves by a NIC
// of the node.
struct Endpoint {
  bool by_rail = false;
  uint32_t rail = 0;
  int nic = 0;
};

// Resources used by the paths through a node so far.
struct Usage {
  std::map<int, int> orders;  // [order] number of paths that follow it
  std::set<int> entry_nics;
};

// Returns how badly a path between these two GPUs fits the endpoint: 0 if it
// enters and leaves by the endpoint's rail or NIC; 1 if it leaves by another
// rail, or enters by a NIC that no other path enters by; 2 if another path
// already enters by that NIC; 3 if it misses the endpoint.
int Detour(const NodeWiring& wiring, int entry, int exit,
           const Endpoint& endpoint, const Usage& usage) {
  if (endpoint.by_rail) {
    if (RailOf(wiring, entry) != endpoint.rail) return 3;
    return RailOf(wiring, exit) == endpoint.rail ? 0 : 1;
  }
  if (NicOf(wiring, exit) != endpoint.nic) return 3;
  const int entry_nic = NicOf(wiring, entry);
  if (entry_nic == endpoint.nic) return 0;
  return usage.entry_nics.count(entry_nic) == 0 ? 1 : 2;
}

// Cuts one of the cyclic orders open at the endpoint of the ring. Prefers
// orders that few paths follow so far.
NodePath CutOpen(const NodeWiring& wiring,
                 const std::vector<std::vector<int>>& orders,
                 const Endpoint& endpoint, Usage& usage) {
  // Detour, number of paths that follow the order, order, front.
  std::tuple<int, int, int, int> best(4, 0, 0, 0);
  for (int i = 0; i < static_cast<int>(orders.size()); ++i) {
    const int size = static_cast<int>(orders[i].size());
    for (int front = 0; front < size; ++front) {
      const int exit = orders[i][(front + size - 1) % size];
      const int detour =
          Detour(wiring, orders[i][front], exit, endpoint, usage);
      best = std::min(best, std::tuple(detour, usage.orders[i], i, front));
    }
  }
  const auto [detour, uses, order, front] = best;
  NodePath path = orders[order];
  std::rotate(path.begin(), path.begin() + front, path.end());
  ++usage.orders[order];
  usage.entry_nics.insert(NicOf(wiring, path.front()));
  return path;
}

// Returns the paths of all rings. If `rails` is empty, they leave by the
// first NICs that the members use.
std::vector<NodePath> PathsThrough(const NodeWiring& wiring,
                                   const std::vector<int>& gpus,
                                   const std::vector<uint32_t>& rails,
                                   size_t num_rings) {
  const std::vector<std::vector<int>> orders = OrdersInside(wiring, gpus);
  std::set<int> nics;
  for (const int gpu : gpus) nics.insert(NicOf(wiring, gpu));
  std::vector<NodePath> paths;
  Usage usage;
  auto nic = nics.begin();
  for (size_t ring = 0; ring < num_rings; ++ring) {
    const Endpoint endpoint =
        rails.empty() ? Endpoint{.nic = *nic++}
                      : Endpoint{.by_rail = true, .rail = rails[ring]};
    paths.push_back(CutOpen(wiring, orders, endpoint, usage));
  }
  return paths;
}

}  // namespace

std::vector<Network::Members> Network::MembersByNode(
    const std::vector<int>& gpus) const {
  std::vector<int> sorted = gpus;
  std::sort(sorted.begin(), sorted.end());
  std::vector<Members> members;
  for (const int gpu : sorted) {
    if (members.empty() || members.back().node != NodeOf(gpu))
      members.push_back({NodeOf(gpu), {}});
    members.back().gpus.push_back(gpu - nodes_[NodeOf(gpu)].first_gpu);
  }
  return members;
}

std::vector<Ring> Network::RingsOver(const std::vector<int>& gpus) const {
  assert(std::all_of(gpus.begin(), gpus.end(),
                     [&](int gpu) { return gpu >= 0 && gpu < num_gpus(); }));
  if (gpus.size() < 2) return {};
  if (nodes_.empty()) {
    Ring ring{{gpus.begin(), gpus.end()}};
    std::sort(ring.gpus.begin(), ring.gpus.end());
    return {ring};
  }
  const std::vector<Members> members = MembersByNode(gpus);
  if (members.size() > 1) return RingsBetweenNodes(members);
  const Place& place = nodes_[members[0].node];
  std::vector<Ring> rings;
  for (const std::vector<int>& order :
       OrdersInside(*wiring_[place.group], members[0].gpus)) {
    rings.emplace_back();
    for (const int gpu : order)
      rings.back().gpus.push_back(place.first_gpu + gpu);
  }
  return rings;
}

std::vector<uint32_t> Network::CommonRails(
    const std::vector<Members>& members) const {
  std::map<uint32_t, size_t> num_nodes;
  for (const Members& inside : members) {
    const NodeWiring& wiring = *wiring_[nodes_[inside.node].group];
    std::set<uint32_t> rails;
    for (const int gpu : inside.gpus) rails.insert(RailOf(wiring, gpu));
    for (const uint32_t rail : rails) ++num_nodes[rail];
  }
  std::vector<uint32_t> common;
  for (const auto& [rail, count] : num_nodes) {
    if (count == members.size()) common.push_back(rail);
  }
  return common;
}

size_t Network::FewestNics(const std::vector<Members>& members) const {
  size_t fewest = std::numeric_limits<size_t>::max();
  for (const Members& inside : members) {
    const NodeWiring& wiring = *wiring_[nodes_[inside.node].group];
    std::set<int> nics;
    for (const int gpu : inside.gpus) nics.insert(NicOf(wiring, gpu));
    fewest = std::min(fewest, nics.size());
  }
  return fewest;
}

std::vector<Ring> Network::RingsBetweenNodes(
    const std::vector<Members>& members) const {
  std::vector<uint32_t> rails;
  size_t num_rings = 0;
  if (fabric_.rail_optimized()) {
    rails = CommonRails(members);
    num_rings = std::max<size_t>(rails.size(), 1);
  } else {
    num_rings = FewestNics(members);
  }
  std::vector<Ring> rings(num_rings);
  // Most nodes are equal and have the same members.
  std::map<std::pair<int, std::vector<int>>, std::vector<NodePath>> known;
  for (const Members& inside : members) {
    const Place& place = nodes_[inside.node];
    auto [entry, is_new] = known.try_emplace({place.group, inside.gpus});
    if (is_new) {
      entry->second =
          PathsThrough(*wiring_[place.group], inside.gpus, rails, num_rings);
    }
    for (size_t ring = 0; ring < num_rings; ++ring) {
      for (const int gpu : entry->second[ring])
        rings[ring].gpus.push_back(place.first_gpu + gpu);
    }
  }
  return rings;
}

}  // namespace weir::scenarios
