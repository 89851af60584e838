// SPDX-License-Identifier: Apache-2.0
// Links and minimal routes of a dragonfly (Kim, Dally, Scott, Abts,
// "Technology-Driven, Highly-Scalable Dragonfly Topology", ISCA 2008).
//
// With p nodes below a leaf switch, a switches in a group and g groups there
// are a (a - 1) directed links in each group and g (g - 1) between groups. The
// link to another group ends at one switch of each group: the i-th of the other
// groups at switch i modulo a. If all nodes together send D bytes per second
// from each switch to uniformly chosen nodes, minimal routes need
//
//   global = a D / g
//   local  = D / (a g) + 2 ceil((g - 1) / a) D / g
//
// bytes per second: a local link carries the traffic between its switches, and
// that to and from the groups whose links end at them.
#ifndef WEIR_SCENARIOS_CLUSTER_DRAGONFLY_H_
#define WEIR_SCENARIOS_CLUSTER_DRAGONFLY_H_

#include <cstdint>
#include <set>
#include <vector>

#include "scenarios/cluster/cluster.pb.h"

namespace weir::scenarios {

// A directed link between two leaf switches.
struct LeafLink {
  int from = 0, to = 0;
  double bytes_per_second = 0;
};

class DragonflyLinks {
 public:
  // No switches.
  DragonflyLinks() = default;
  // Requires: ValidateCluster(cluster) is OK, and its fabric is a dragonfly.
  explicit DragonflyLinks(const Cluster& cluster);

  int num_leaves() const { return num_leaves_; }
  int num_groups() const { return num_groups_; }
  // Links inside the groups, then links between groups.
  const std::vector<LeafLink>& links() const { return links_; }
  double local_bytes_per_second() const { return local_bytes_per_second_; }
  double global_bytes_per_second() const { return global_bytes_per_second_; }

  // Returns the indices of the links from one switch to another, nothing from a
  // switch to itself: one to three on a minimal route. If one of these has
  // failed, a route with the fewest links.
  std::vector<int> RouteBetween(int from_leaf, int to_leaf) const;

  // Returns the way through a third group (Valiant): minimal routes to the
  // switch at which the link from the first group ends, and on to `to_leaf`.
  // `choice` picks among the groups that are neither the first nor the last. A
  // minimal route inside a group, or if there is no third group.
  std::vector<int> ValiantRoute(int from_leaf, int to_leaf,
                                uint64_t choice) const;

  // Removes the links between two switches, in both directions. Returns false
  // if there are none.
  bool Fail(int leaf, int other);
  // Returns true if every switch reaches every other.
  bool connected() const;

 private:
  std::vector<int> MinimalRoute(int from_leaf, int to_leaf) const;
  // Returns a route with the fewest links over links that have not failed, or
  // nothing if there is none.
  std::vector<int> Detour(int from_leaf, int to_leaf) const;
  int GroupOf(int leaf) const { return leaf / leaves_per_group_; }
  int LeavesOf(int group) const;
  // Returns the switch of a group at which the link to another group ends.
  int GatewayOf(int group, int other) const;
  int LocalLink(int from, int to) const;
  int GlobalLink(int from_group, int to_group) const;

  int leaves_per_group_ = 1;
  int num_leaves_ = 0, num_groups_ = 0;
  int num_local_ = 0;
  double local_bytes_per_second_ = 0, global_bytes_per_second_ = 0;
  std::vector<LeafLink> links_;
  std::set<int> failed_;  // indices of links
};

// Returns the number of directed links between leaf switches, before memory is
// allocated for them. Requires: positive sizes.
double NumDragonflyLinks(double num_leaves, double leaves_per_group);

}  // namespace weir::scenarios

#endif  // WEIR_SCENARIOS_CLUSTER_DRAGONFLY_H_
