// SPDX-License-Identifier: Apache-2.0
#include "scenarios/cluster/network.h"

#include <algorithm>
#include <cassert>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/split_mix.h"
#include "scenarios/cluster/degraded_links.h"
#include "scenarios/cluster/node_wiring.h"
#include "scenarios/cluster/slow_parts.h"

namespace weir::scenarios {

Network::Network(const Cluster& cluster) : fabric_(cluster.fabric()) {
  for (const NodeGroup& group : cluster.groups()) {
    wiring_.push_back(
        std::make_shared<const NodeWiring>(WireNode(group.node())));
    const NodeWiring& wiring = *wiring_.back();
    for (uint32_t i = 0; i < group.count(); ++i) {
      const int node = static_cast<int>(nodes_.size());
      nodes_.push_back({static_cast<int32_t>(wiring_.size() - 1), num_gpus(),
                        static_cast<int32_t>(links_.size())});
      gpu_node_.insert(gpu_node_.end(), wiring.num_gpus(), node);
      for (const Link& link : wiring.links) {
        links_.push_back({absl::StrCat("node", node, ".", link.name),
                          link.bytes_per_second});
      }
    }
  }
  for (const auto& [node, nics] : FailedNics(cluster)) {
    NodeWiring wiring = *wiring_[nodes_[node].group];
    FailNics(nics, &wiring);
    nodes_[node].group = static_cast<int32_t>(wiring_.size());
    wiring_.push_back(std::make_shared<const NodeWiring>(std::move(wiring)));
  }
  AddLeafSwitches(cluster);
  SlowLinks(cluster, &links_);
  ApplyBackground(cluster, &links_);
}

Network Network::OfGivenCosts(int num_gpus, double hop_seconds) {
  Network network;
  network.hop_seconds_ = hop_seconds;
  network.gpu_node_.assign(num_gpus, 0);
  return network;
}

// Adds links only for leaf switches that are oversubscribed, slow or degraded,
// or on whose uplinks messages may collide: others never saturate, and links
// shared by many flows are expensive for the solver.
void Network::AddLeafSwitches(const Cluster& cluster) {
  const int num_nodes = static_cast<int>(nodes_.size());
  const int nodes_per_leaf =
      static_cast<int>(std::min<uint32_t>(fabric_.nodes_per_leaf(), num_nodes));
  first_leaf_link_ = static_cast<int32_t>(links_.size());
  if (fabric_.has_dragonfly()) {
    AddDragonfly(cluster);
    return;
  }
  const bool hashes = fabric_.routing() == ROUTING_ECMP;
  const bool saturates = fabric_.oversubscription() > 1 ||
                         HasSlowLeaf(cluster) || HasDegradedUplinks(cluster) ||
                         hashes;
  if (!saturates || nodes_per_leaf == 0) return;
  const int num_uplinks = UplinksPerLeaf(cluster);
  if (hashes) num_uplinks_ = num_uplinks;
  std::set<uint32_t> rails = {0};
  if (fabric_.rail_optimized()) {
    for (const Nic& nic : cluster.groups(0).node().nics())
      rails.insert(nic.rail());
  }
  leaf_rails_.assign(rails.begin(), rails.end());
  for (int first = 0; first < num_nodes; first += nodes_per_leaf) {
    const int leaf = first / nodes_per_leaf;
    const int num_failed = FailedUplinks(cluster, leaf);
    if (hashes && num_failed > 0) failed_uplinks_[leaf] = num_failed;
    for (const uint32_t rail : leaf_rails_) {
      double bytes_per_second = 0;
      for (int i = 0; i < nodes_per_leaf; ++i) {
        // A partially filled last leaf has all its ports.
        const int node = std::min(first + i, num_nodes - 1);
        for (const Nic& nic : wiring_[nodes_[node].group]->node.nics()) {
          if (!fabric_.rail_optimized() || nic.rail() == rail)
            bytes_per_second += nic.bytes_per_second();
        }
      }
      bytes_per_second *= SpeedOfLeaf(cluster, leaf) *
                          RateLeftAtLeaf(cluster, leaf) /
                          std::max(fabric_.oversubscription(), 1.0);
      std::string name = absl::StrCat("leaf", leaf);
      if (fabric_.rail_optimized())
        name = absl::StrCat("rail", rail, ".", name);
      if (!hashes) {
        bytes_per_second *= 1.0 * (num_uplinks - num_failed) / num_uplinks;
        links_.push_back({name + ".up", bytes_per_second});
        links_.push_back({name + ".down", bytes_per_second});
        continue;
      }
      for (int i = 0; i < num_uplinks; ++i) {
        const std::string uplink = absl::StrCat(name, ".spine", i);
        links_.push_back({uplink + ".up", bytes_per_second / num_uplinks});
        links_.push_back({uplink + ".down", bytes_per_second / num_uplinks});
      }
    }
  }
}

void Network::AddDragonfly(const Cluster& cluster) {
  dragonfly_ = DragonflyLinks(cluster);
  for (const auto& [leaf, other] : FailedLeafLinks(cluster)) {
    dragonfly_.Fail(leaf, other);
  }
  for (const LeafLink& link : dragonfly_.links()) {
    links_.push_back({absl::StrCat("leaf", link.from, "-leaf", link.to),
                      link.bytes_per_second *
                          std::min(SpeedOfLeaf(cluster, link.from),
                                   SpeedOfLeaf(cluster, link.to)) *
                          std::min(RateLeftAtLeaf(cluster, link.from),
                                   RateLeftAtLeaf(cluster, link.to))});
  }
}

Route Network::RouteBetween(int from, int to) const {
  assert(from >= 0 && from < num_gpus() && to >= 0 && to < num_gpus());
  Route route;
  if (from == to) return route;
  if (nodes_.empty()) {
    route.latency_seconds = hop_seconds_;
  } else if (NodeOf(from) == NodeOf(to)) {
    const Place& place = nodes_[NodeOf(from)];
    AppendGpuToGpu(*wiring_[place.group], from - place.first_gpu,
                   to - place.first_gpu, place.first_link, route);
  } else {
    AppendWayBetweenNodes(from, to, route);
  }
  return route;
}

Wire Network::WireBetween(int from, int to) const {
  if (nodes_.empty() || from == to) return Wire::kNone;
  if (NodeOf(from) != NodeOf(to)) return Wire::kNetwork;
  const Place& place = nodes_[NodeOf(from)];
  return WireInNode(*wiring_[place.group], from - place.first_gpu,
                    to - place.first_gpu);
}

bool Network::SameLeaf(int from, int to) const {
  const int nodes_per_leaf = static_cast<int>(fabric_.nodes_per_leaf());
  return nodes_per_leaf <= 0 ||
         NodeOf(from) / nodes_per_leaf == NodeOf(to) / nodes_per_leaf;
}

Route Network::RouteToHost(int gpu) const {
  Route route;
  if (nodes_.empty()) return route;
  const Place& place = nodes_[NodeOf(gpu)];
  AppendGpuToHost(*wiring_[place.group], gpu - place.first_gpu,
                  place.first_link, route);
  return route;
}

Route Network::RouteFromHost(int gpu) const {
  Route route = RouteToHost(gpu);
  std::reverse(route.links.begin(), route.links.end());
  for (int32_t& link : route.links) ++link;  // rx comes after tx
  return route;
}

void Network::AppendWayBetweenNodes(int from, int to, Route& route) const {
  const Place& source = nodes_[NodeOf(from)];
  const Place& target = nodes_[NodeOf(to)];
  const NodeWiring& source_wiring = *wiring_[source.group];
  const NodeWiring& target_wiring = *wiring_[target.group];
  int sender = from - source.first_gpu;
  const int receiver = to - target.first_gpu;
  const int target_nic = NicOf(target_wiring, receiver);
  const uint32_t rail = target_wiring.node.nics(target_nic).rail();
  int source_nic = NicOf(source_wiring, sender);
  if (fabric_.rail_optimized() &&
      source_wiring.node.nics(source_nic).rail() != rail) {
    const int own_nic = source_nic;
    const auto on_rail_gpus = source_wiring.rail_gpus.find(rail);
    source_nic = NicOnRail(source_wiring, sender, rail);
    if (source_nic < 0 && on_rail_gpus == source_wiring.rail_gpus.end()) {
      // No adapter of the rail works: the message changes rails in the spine.
      source_nic = own_nic;
    } else if (source_nic < 0) {
      const std::vector<int32_t>& on_rail = on_rail_gpus->second;
      const int proxy = on_rail[receiver % on_rail.size()];
      AppendGpuToGpu(source_wiring, sender, proxy, source.first_link, route);
      sender = proxy;
      source_nic = NicOnRail(source_wiring, sender, rail);
    }
  }
  AppendGpuToNic(source_wiring, sender, source_nic, source.first_link, route);
  AppendFabric({from, to, source_wiring.node.nics(source_nic).rail(), rail},
               route);
  AppendNicToGpu(target_wiring, target_nic, receiver, target.first_link, route);
}

int32_t Network::UplinkOf(int leaf, uint32_t rail, int spine) const {
  const uint32_t key = fabric_.rail_optimized() ? rail : 0;
  const int index = static_cast<int>(
      std::lower_bound(leaf_rails_.begin(), leaf_rails_.end(), key) -
      leaf_rails_.begin());
  const int num_rails = static_cast<int>(leaf_rails_.size());
  return first_leaf_link_ +
         2 * ((leaf * num_rails + index) * num_uplinks_ + spine);
}

uint64_t Network::HashOf(const FabricPath& path) {
  const uint64_t pair = (static_cast<uint64_t>(path.from_gpu) << 32) |
                        static_cast<uint64_t>(path.to_gpu);
  return SplitMix(pair + kSplitMixStep);
}

// The first links are those that have failed, in all leaf switches, so that any
// two have a common switch of the spine.
int Network::SpineOf(const FabricPath& path, int from_leaf, int to_leaf) const {
  if (num_uplinks_ == 1) return 0;
  int first = 0;
  for (const int leaf : {from_leaf, to_leaf}) {
    const auto failed = failed_uplinks_.find(leaf);
    if (failed != failed_uplinks_.end())
      first = std::max(first, failed->second);
  }
  return first + static_cast<int>(HashOf(path) % (num_uplinks_ - first));
}

void Network::AppendFabric(const FabricPath& path, Route& route) const {
  route.latency_seconds += fabric_.latency_seconds();
  const uint32_t nodes_per_leaf = fabric_.nodes_per_leaf();
  if (nodes_per_leaf == 0) return;
  const int from_leaf =
      static_cast<int>(NodeOf(path.from_gpu) / nodes_per_leaf);
  const int to_leaf = static_cast<int>(NodeOf(path.to_gpu) / nodes_per_leaf);
  const bool same_rail =
      !fabric_.rail_optimized() || path.from_rail == path.to_rail;
  if (from_leaf == to_leaf && same_rail) return;
  if (fabric_.has_dragonfly()) {
    const bool valiant = fabric_.routing() == ROUTING_VALIANT;
    for (const int link :
         valiant ? dragonfly_.ValiantRoute(from_leaf, to_leaf, HashOf(path))
                 : dragonfly_.RouteBetween(from_leaf, to_leaf)) {
      route.links.push_back(first_leaf_link_ + link);
      route.latency_seconds += fabric_.hop_latency_seconds();
    }
    return;
  }
  route.latency_seconds += fabric_.hop_latency_seconds();
  if (leaf_rails_.empty()) return;
  const int spine = SpineOf(path, from_leaf, to_leaf);
  route.links.push_back(UplinkOf(from_leaf, path.from_rail, spine));
  route.links.push_back(UplinkOf(to_leaf, path.to_rail, spine) + 1);
}

}  // namespace weir::scenarios
