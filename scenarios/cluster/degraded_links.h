// SPDX-License-Identifier: Apache-2.0
// Failed links, and traffic of other jobs.
#ifndef WEIR_SCENARIOS_CLUSTER_DEGRADED_LINKS_H_
#define WEIR_SCENARIOS_CLUSTER_DEGRADED_LINKS_H_

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "scenarios/cluster/cluster.pb.h"
#include "scenarios/cluster/network.h"
#include "scenarios/cluster/node_wiring.h"

namespace weir::scenarios {

// Parses "node3.nic2", "leaf:2", "leaf:2=3" or "leaf3-leaf5", several separated
// by commas.
// Returns InvalidArgument "is x, expected y".
absl::StatusOr<std::vector<FailedLink>> ParseFailedLinks(
    absl::string_view text);

// Parses "fabric=0.3", "leaf:2=0.3" or "link:node3.nic2=0.3", several separated
// by commas. Returns InvalidArgument "is x, expected y".
absl::StatusOr<std::vector<BackgroundTraffic>> ParseBackgroundTraffic(
    absl::string_view text);

// Returns "node3.nic2" or "leaf:2=3", as ParseFailedLinks reads them.
std::string TextOf(const FailedLink& failed);
// Returns "fabric=0.3", as ParseBackgroundTraffic reads it.
std::string TextOf(const BackgroundTraffic& traffic);

// Returns InvalidArgument with every entry of Cluster.failed and .background
// that names no part of the cluster, leaves no link of a kind, or has an
// invalid share. Messages begin with `label`. Requires: the rest of the cluster
// is valid.
absl::Status CheckDegradedLinks(absl::string_view label,
                                const Cluster& cluster);

// Returns the numbers of failed adapters by node.
std::map<int, std::set<int>> FailedNics(const Cluster& cluster);

// Returns the pairs of leaf switches of a dragonfly whose links have failed.
std::vector<std::pair<int, int>> FailedLeafLinks(const Cluster& cluster);

// Gives the GPUs of failed adapters the next adapter of the node that works.
// Requires: one does.
void FailNics(const std::set<int>& nics, NodeWiring* wiring);

// Returns true if links between switches have failed or carry other traffic.
bool HasDegradedUplinks(const Cluster& cluster);

// Returns the number of links from a leaf switch (of a rail) to the spine.
int UplinksPerLeaf(const Cluster& cluster);

// Returns how many of them have failed.
int FailedUplinks(const Cluster& cluster, int leaf);

// Returns the part of the rate of a leaf switch's links to other switches that
// other jobs leave.
double RateLeftAtLeaf(const Cluster& cluster, int leaf);

// Multiplies the rates of links by what other jobs leave of them.
void ApplyBackground(const Cluster& cluster, std::vector<Link>* links);

}  // namespace weir::scenarios

#endif  // WEIR_SCENARIOS_CLUSTER_DEGRADED_LINKS_H_
