// SPDX-License-Identifier: Apache-2.0
// Network::RingsOver.
#include <algorithm>
#include <cassert>
#include <map>
#include <set>
#include <tuple>

#include "scenarios/disjoint_cycles.h"
#include "scenarios/network.h"
#include "scenarios/node_wiring.h"

namespace weir {
namespace {

// The cyclic orders in which a collective may visit these GPUs of a node, all
// at the same time: both directions of every NVLink cycle, else PCIe's order.
std::vector<std::vector<int>> OrdersInside(const NodeWiring& wiring,
                                           const std::vector<int>& gpus) {
  std::vector<std::vector<int>> orders;
  if (!wiring.mesh_lanes.empty()) {
    const int size = static_cast<int>(gpus.size());
    std::vector<int32_t> lanes(size * size);
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

// How one ring passes through a node: in at the front, out at the back.
using Passage = std::vector<int>;

// What the passages of a node have used so far.
struct Usage {
  std::map<int, int> orders;  // [order] passages that follow it
  std::set<int> entry_nics;
};

// Cuts one of the cyclic orders open so that the ring leaves by NIC `nic`
// (`rail` below 0) or enters on rail `rail`; else as evenly as it can.
Passage CutOpen(const NodeWiring& wiring,
                const std::vector<std::vector<int>>& orders, int nic,
                int64_t rail, Usage& usage) {
  using Cost = std::tuple<bool, int, int, int, int>;
  Cost best_cost(true, 9, 0, 0, 0);
  for (int i = 0; i < static_cast<int>(orders.size()); ++i) {
    const int size = static_cast<int>(orders[i].size());
    for (int front = 0; front < size; ++front) {
      const int entry = orders[i][front];
      const int exit = orders[i][(front + size - 1) % size];
      bool wrong = false;
      int detour = 0;  // 0: in and out by one NIC, 1: evenly, 2: not
      if (rail >= 0) {
        wrong =
            NicOnRail(wiring, entry, rail) < 0 || RailOf(wiring, entry) != rail;
        detour = RailOf(wiring, exit) == rail ? 0 : 1;
      } else {
        const int entry_nic = NicOf(wiring, entry);
        wrong = NicOf(wiring, exit) != nic;
        detour = entry_nic == nic                    ? 0
                 : usage.entry_nics.count(entry_nic) ? 2
                                                     : 1;
      }
      best_cost =
          std::min(best_cost, Cost(wrong, detour, usage.orders[i], i, front));
    }
  }
  const int order = std::get<3>(best_cost);
  const int front = std::get<4>(best_cost);
  Passage passage = orders[order];
  std::rotate(passage.begin(), passage.begin() + front, passage.end());
  ++usage.orders[order];
  usage.entry_nics.insert(NicOf(wiring, passage.front()));
  return passage;
}

// One passage per NIC or rail that the ring takes there. `rails` empty: the
// first `num_rings` NICs that the members use.
std::vector<Passage> PassagesThrough(const NodeWiring& wiring,
                                     const std::vector<int>& gpus,
                                     const std::vector<uint32_t>& rails,
                                     int num_rings) {
  const std::vector<std::vector<int>> orders = OrdersInside(wiring, gpus);
  std::set<int> nics;
  for (const int gpu : gpus) nics.insert(NicOf(wiring, gpu));
  std::vector<Passage> passages;
  Usage usage;
  auto nic = nics.begin();
  for (int ring = 0; ring < num_rings; ++ring) {
    if (rails.empty()) {
      passages.push_back(CutOpen(wiring, orders, *nic++, -1, usage));
    } else {
      passages.push_back(CutOpen(wiring, orders, -1, rails[ring], usage));
    }
  }
  return passages;
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

std::vector<Ring> Network::RingsBetweenNodes(
    const std::vector<Members>& members) const {
  // Rails (and NICs) that every node's members can use.
  std::set<uint32_t> rails;
  size_t num_rings = 0;
  for (size_t i = 0; i < members.size(); ++i) {
    const NodeWiring& wiring = *wiring_[nodes_[members[i].node].group];
    std::set<int> nics;
    std::set<uint32_t> own_rails;
    for (const int gpu : members[i].gpus) {
      nics.insert(NicOf(wiring, gpu));
      own_rails.insert(RailOf(wiring, gpu));
    }
    num_rings = i == 0 ? nics.size() : std::min(num_rings, nics.size());
    if (i == 0) rails = own_rails;
    std::set<uint32_t> common;
    std::set_intersection(rails.begin(), rails.end(), own_rails.begin(),
                          own_rails.end(),
                          std::inserter(common, common.begin()));
    rails = common;
  }
  std::vector<uint32_t> ring_rails;
  if (fabric_.rail_optimized()) {
    ring_rails.assign(rails.begin(), rails.end());
    num_rings = std::max<size_t>(rails.size(), 1);
  }
  std::vector<Ring> rings(num_rings);
  std::map<std::pair<int, std::vector<int>>, std::vector<Passage>> known;
  for (const Members& inside : members) {
    const Place& place = nodes_[inside.node];
    auto [entry, is_new] = known.try_emplace({place.group, inside.gpus});
    if (is_new) {
      entry->second = PassagesThrough(*wiring_[place.group], inside.gpus,
                                      ring_rails, static_cast<int>(num_rings));
    }
    for (size_t ring = 0; ring < num_rings; ++ring) {
      for (const int gpu : entry->second[ring])
        rings[ring].gpus.push_back(place.first_gpu + gpu);
    }
  }
  return rings;
}

}  // namespace weir
