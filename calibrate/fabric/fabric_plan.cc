// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fabric/fabric_plan.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/problems.h"
#include "base/status_macros.h"

namespace weir::calibrate {
namespace {

std::vector<double> Within(const std::set<double>& sizes, double low,
                           double high) {
  return {sizes.lower_bound(low), sizes.upper_bound(high)};
}

// Returns the first `ranks_per_node` ranks of the first `num_nodes` nodes.
GroupPlan Take(const std::vector<std::vector<int>>& nodes, int num_nodes,
               int ranks_per_node) {
  GroupPlan group;
  group.ranks_per_node = ranks_per_node;
  for (int node = 0; node < num_nodes; ++node) {
    group.ranks.insert(group.ranks.end(), nodes[node].begin(),
                       nodes[node].begin() + ranks_per_node);
  }
  group.text = absl::StrCat(group.ranks.size(), " ranks, ", num_nodes,
                            num_nodes == 1 ? " node" : " nodes");
  return group;
}

}  // namespace

std::vector<double> TransferKnots(int num_channels, double max_bytes) {
  std::set<double> knots;
  for (int channels = 1; channels < 2 * num_channels; channels *= 2) {
    for (const double part : {0x1p14, 0x1p16, 0x1p17, 0x1p24}) {
      knots.insert(part * std::min(channels, num_channels));
    }
  }
  return Within(knots, kLeastBytes + 1, max_bytes - 1);
}

std::vector<double> TransferSizes(int num_channels, double max_bytes) {
  std::set<double> sizes;
  for (const double bytes : CollectiveSizes(max_bytes)) {
    sizes.insert(bytes);
    sizes.insert(bytes * 1.5);
  }
  for (const double knot : TransferKnots(num_channels, max_bytes)) {
    sizes.insert(knot);
  }
  sizes.insert(max_bytes);
  return Within(sizes, kLeastBytes, max_bytes);
}

std::vector<double> CollectiveSizes(double max_bytes) {
  std::vector<double> sizes;
  for (int power = 0; power <= std::ilogb(max_bytes / kLeastBytes); ++power) {
    sizes.push_back(std::ldexp(kLeastBytes, power));
  }
  return sizes;
}

absl::StatusOr<std::vector<GroupPlan>> PlanGroups(
    const std::vector<RankPlace>& places, const std::vector<int>& sizes) {
  std::vector<std::vector<int>> nodes;
  for (size_t rank = 0; rank < places.size(); ++rank) {
    nodes.resize(std::max<size_t>(nodes.size(), places[rank].node + 1));
    nodes[places[rank].node].push_back(static_cast<int>(rank));
  }
  size_t least = places.size();
  for (const auto& ranks : nodes) least = std::min(least, ranks.size());
  const int per_node = static_cast<int>(least);
  const int num_nodes = static_cast<int>(nodes.size());
  std::set<int> wanted(sizes.begin(), sizes.end());
  if (sizes.empty()) {
    for (int size = 2; size < per_node * num_nodes; size *= 2) {
      wanted.insert(size);
    }
    if (per_node * num_nodes > 1) wanted.insert(per_node * num_nodes);
  }
  Problems problems("--groups");
  std::vector<GroupPlan> groups;
  for (const int size : wanted) {
    const size_t before = groups.size();
    if (size < 2) {
      problems.Add("", absl::StrCat("has ", size, ", expected 2 or more"));
      continue;
    }
    if (size <= per_node) groups.push_back(Take(nodes, 1, size));
    if (size > per_node && size % per_node == 0 &&
        size / per_node <= num_nodes) {
      groups.push_back(Take(nodes, size / per_node, per_node));
    }
    // With one GPU per node this would be the same group again.
    if (size <= num_nodes && per_node > 1) {
      groups.push_back(Take(nodes, size, 1));
    }
    if (!sizes.empty() && groups.size() == before) {
      problems.Add("",
                   absl::StrCat("has ", size,
                                ", expected ranks of one "
                                "node or whole nodes of ",
                                num_nodes, " with ", per_node, " ranks each"));
    }
  }
  RETURN_IF_ERROR(problems.ToStatus());
  return groups;
}

}  // namespace weir::calibrate
