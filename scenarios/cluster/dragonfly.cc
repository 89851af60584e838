// SPDX-License-Identifier: Apache-2.0
#include "scenarios/cluster/dragonfly.h"

#include <algorithm>
#include <cmath>

#include "scenarios/cluster/cluster.h"

namespace weir::scenarios {
namespace {

// Returns what the adapters below a full leaf switch can send.
double LeafBytesPerSecond(const Cluster& cluster) {
  double most = 0;
  for (const NodeGroup& group : cluster.groups()) {
    double node = 0;
    for (const Nic& nic : group.node().nics()) node += nic.bytes_per_second();
    most = std::max(most, node);
  }
  return most * cluster.fabric().nodes_per_leaf();
}

}  // namespace

double NumDragonflyLinks(double num_leaves, double leaves_per_group) {
  const double in_group = std::min(num_leaves, leaves_per_group);
  const double num_groups = std::ceil(num_leaves / leaves_per_group);
  return num_groups * in_group * (in_group - 1) + num_groups * (num_groups - 1);
}

DragonflyLinks::DragonflyLinks(const Cluster& cluster) {
  const Fabric& fabric = cluster.fabric();
  const Dragonfly& dragonfly = fabric.dragonfly();
  const int nodes_per_leaf = static_cast<int>(fabric.nodes_per_leaf());
  leaves_per_group_ = static_cast<int>(dragonfly.leaves_per_group());
  num_leaves_ = (NumNodes(cluster) - 1) / nodes_per_leaf + 1;
  num_groups_ = (num_leaves_ - 1) / leaves_per_group_ + 1;
  const double a = std::min(leaves_per_group_, num_leaves_);
  const double g = num_groups_;
  const double injected = LeafBytesPerSecond(cluster);
  local_bytes_per_second_ = dragonfly.local_bytes_per_second();
  if (local_bytes_per_second_ == 0) {
    local_bytes_per_second_ =
        injected / (a * g) + 2 * std::ceil((g - 1) / a) * injected / g;
  }
  global_bytes_per_second_ = dragonfly.global_bytes_per_second();
  if (global_bytes_per_second_ == 0) {
    global_bytes_per_second_ =
        a * injected / g / std::max(1.0, fabric.oversubscription());
  }
  for (int group = 0; group < num_groups_; ++group) {
    const int first = group * leaves_per_group_;
    const int last = first + LeavesOf(group);
    for (int from = first; from < last; ++from) {
      for (int to = first; to < last; ++to) {
        if (from != to) links_.push_back({from, to, local_bytes_per_second_});
      }
    }
  }
  num_local_ = static_cast<int>(links_.size());
  for (int from = 0; from < num_groups_; ++from) {
    for (int to = 0; to < num_groups_; ++to) {
      if (from == to) continue;
      links_.push_back(
          {GatewayOf(from, to), GatewayOf(to, from), global_bytes_per_second_});
    }
  }
}

int DragonflyLinks::LeavesOf(int group) const {
  return std::min(leaves_per_group_, num_leaves_ - group * leaves_per_group_);
}

int DragonflyLinks::GatewayOf(int group, int other) const {
  const int index = other < group ? other : other - 1;
  return group * leaves_per_group_ + index % LeavesOf(group);
}

int DragonflyLinks::LocalLink(int from, int to) const {
  const int group = GroupOf(from);
  // All earlier groups are full.
  const int before = group * leaves_per_group_ * (leaves_per_group_ - 1);
  const int row = from % leaves_per_group_, column = to % leaves_per_group_;
  return before + row * (LeavesOf(group) - 1) +
         (column < row ? column : column - 1);
}

int DragonflyLinks::GlobalLink(int from_group, int to_group) const {
  return num_local_ + from_group * (num_groups_ - 1) +
         (to_group < from_group ? to_group : to_group - 1);
}

std::vector<int> DragonflyLinks::MinimalRoute(int from_leaf,
                                              int to_leaf) const {
  std::vector<int> route;
  if (from_leaf == to_leaf) return route;
  const int from_group = GroupOf(from_leaf), to_group = GroupOf(to_leaf);
  if (from_group == to_group) return {LocalLink(from_leaf, to_leaf)};
  const int exit = GatewayOf(from_group, to_group);
  const int entry = GatewayOf(to_group, from_group);
  if (from_leaf != exit) route.push_back(LocalLink(from_leaf, exit));
  route.push_back(GlobalLink(from_group, to_group));
  if (entry != to_leaf) route.push_back(LocalLink(entry, to_leaf));
  return route;
}

std::vector<int> DragonflyLinks::RouteBetween(int from_leaf,
                                              int to_leaf) const {
  std::vector<int> route = MinimalRoute(from_leaf, to_leaf);
  const bool works = std::none_of(route.begin(), route.end(), [&](int link) {
    return failed_.count(link) > 0;
  });
  return works ? route : Detour(from_leaf, to_leaf);
}

std::vector<int> DragonflyLinks::ValiantRoute(int from_leaf, int to_leaf,
                                              uint64_t choice) const {
  const int from_group = GroupOf(from_leaf), to_group = GroupOf(to_leaf);
  if (from_group == to_group || num_groups_ < 3) {
    return RouteBetween(from_leaf, to_leaf);
  }
  auto third = static_cast<int>(choice % (num_groups_ - 2));
  for (const int taken :
       {std::min(from_group, to_group), std::max(from_group, to_group)}) {
    if (third >= taken) ++third;
  }
  const int entry = GatewayOf(third, from_group);
  std::vector<int> route = RouteBetween(from_leaf, entry);
  for (const int link : RouteBetween(entry, to_leaf)) {
    // A detour may use a link twice, but a route lists each link once.
    if (std::find(route.begin(), route.end(), link) == route.end()) {
      route.push_back(link);
    }
  }
  return route;
}

bool DragonflyLinks::Fail(int leaf, int other) {
  bool found = false;
  for (size_t i = 0; i < links_.size(); ++i) {
    const LeafLink& link = links_[i];
    if ((link.from == leaf && link.to == other) ||
        (link.from == other && link.to == leaf)) {
      failed_.insert(static_cast<int>(i));
      found = true;
    }
  }
  return found;
}

bool DragonflyLinks::connected() const {
  for (int leaf = 1; leaf < num_leaves_; ++leaf) {
    // Links fail in both directions.
    if (Detour(0, leaf).empty()) return false;
  }
  return true;
}

std::vector<int> DragonflyLinks::Detour(int from_leaf, int to_leaf) const {
  std::vector<std::vector<int>> links_from(num_leaves_);
  for (size_t i = 0; i < links_.size(); ++i) {
    if (failed_.count(static_cast<int>(i)) > 0) continue;
    links_from[links_[i].from].push_back(static_cast<int>(i));
  }
  std::vector<int> arrived_over(num_leaves_, -1);  // index of a link
  std::vector<int> reached = {from_leaf};
  for (size_t next = 0; next < reached.size(); ++next) {
    const std::vector<int>& links = links_from[reached[next]];
    // Switches begin with different neighbors, so that detours spread.
    for (size_t i = 0; i < links.size(); ++i) {
      const int link = links[(i + to_leaf) % links.size()];
      const int leaf = links_[link].to;
      if (leaf == from_leaf || arrived_over[leaf] >= 0) continue;
      arrived_over[leaf] = link;
      reached.push_back(leaf);
    }
  }
  std::vector<int> route;
  for (int leaf = to_leaf; leaf != from_leaf;) {
    const int link = arrived_over[leaf];
    if (link < 0) return {};
    route.push_back(link);
    leaf = links_[link].from;
  }
  std::reverse(route.begin(), route.end());
  return route;
}

}  // namespace weir::scenarios
