// SPDX-License-Identifier: Apache-2.0
// Parts of a cluster that are slower than others of their kind.
#ifndef WEIR_SCENARIOS_CLUSTER_SLOW_PARTS_H_
#define WEIR_SCENARIOS_CLUSTER_SLOW_PARTS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/problems.h"
#include "scenarios/cluster/cluster.pb.h"
#include "scenarios/cluster/network.h"

namespace weir::scenarios {

// Parses "gpu17=0.8", "link:node3.nic2=0.5" or "leaf:2=0.5", several separated
// by commas. Returns InvalidArgument "is x, expected y".
absl::StatusOr<std::vector<SlowPart>> ParseSlowParts(absl::string_view text);

// Returns true if `name` is a link's, or, without ".tx" or ".rx", names both of
// its directions.
bool NamesLink(absl::string_view name, absl::string_view link);

// Adds a problem, with a suggestion, if no link of the network has the name.
void CheckLinkName(const std::string& field, const std::string& name,
                   const Network& network, Problems* problems);

// Returns InvalidArgument with every entry of Cluster.slow that names no part
// of the cluster or has an invalid speed. Messages begin with `label`.
// Requires: the rest of the cluster is valid.
absl::Status CheckSlowParts(absl::string_view label, const Cluster& cluster);

// Returns the speeds of the slow GPUs: the product, if there are several for a
// GPU.
std::map<int, double> SlowGpus(const Cluster& cluster);

// Returns the product of the speeds of all entries for all GPUs: the speed at a
// lower clock, which multiplies those of SlowGpus.
double SpeedOfAllGpus(const Cluster& cluster);

// Returns true if the uplinks of a leaf switch are slow.
bool HasSlowLeaf(const Cluster& cluster);

// Returns the product of the speeds of all entries for this leaf switch.
double SpeedOfLeaf(const Cluster& cluster, int leaf);

// Multiplies the rates of slow links.
void SlowLinks(const Cluster& cluster, std::vector<Link>* links);

}  // namespace weir::scenarios

#endif  // WEIR_SCENARIOS_CLUSTER_SLOW_PARTS_H_
