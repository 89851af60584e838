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

std::vector<int> DragonflyLinks::RouteBetween(int from_leaf,
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

}  // namespace weir::scenarios
