// SPDX-License-Identifier: Apache-2.0
// Loads and checks clusters.
#ifndef WEIR_SCENARIOS_CLUSTER_CLUSTER_H_
#define WEIR_SCENARIOS_CLUSTER_CLUSTER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "scenarios/cluster/cluster.pb.h"

namespace weir::scenarios {

// Limits of a cluster. Larger ones are rejected before memory is allocated.
inline constexpr int kMaxGpus = 1 << 20;
inline constexpr int kMaxGpusPerNode = 1024;
inline constexpr int kMaxGpusPerMesh = 256;
inline constexpr int kMaxLinks = 1 << 24;

// Loads and validates a preset ("p3-16xlarge") or a textproto file. A positive
// `num_nodes` replaces the number of nodes of a cluster with a single node
// group, after the changes (cluster_changes.h): it counts NVLink domains.
// Returns NotFound if there is neither preset nor file, and InvalidArgument
// with all problems of the cluster or of the changes.
absl::StatusOr<Cluster> LoadCluster(const std::string& name_or_path,
                                    int num_nodes = 0,
                                    const ClusterChanges& changes = {});

// Reports all problems of a cluster at once. SimGrid aborts on bad platforms,
// so this must detect everything that is bad. Returns InvalidArgument with
// them.
absl::Status ValidateCluster(absl::string_view label, const Cluster& cluster);

// Requires: ValidateCluster(cluster) is OK.
int NumGpus(const Cluster& cluster);
int NumNodes(const Cluster& cluster);

}  // namespace weir::scenarios

#endif  // WEIR_SCENARIOS_CLUSTER_CLUSTER_H_
