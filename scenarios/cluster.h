// SPDX-License-Identifier: Apache-2.0
// Loading and checking clusters.
#ifndef WEIR_SCENARIOS_CLUSTER_H_
#define WEIR_SCENARIOS_CLUSTER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "scenarios/cluster.pb.h"

namespace weir {

// What one cluster may hold; larger ones are refused before memory is taken.
inline constexpr int kMaxGpus = 1 << 20;
inline constexpr int kMaxGpusPerNode = 1024;
inline constexpr int kMaxGpusPerMesh = 256;
inline constexpr int kMaxLinks = 1 << 24;

// Loads a preset ("p3-16xlarge") or a textproto file, validated.
// `num_nodes` above 0 replaces the count of a cluster with one node group.
absl::StatusOr<Cluster> LoadCluster(const std::string& name_or_path,
                                    int num_nodes = 0);

// Everything wrong with a cluster, all problems at once: SimGrid aborts on bad
// platforms, so nothing bad may get past here.
absl::Status ValidateCluster(absl::string_view label, const Cluster& cluster);

// REQUIRES: ValidateCluster(cluster) is OK.
int NumGpus(const Cluster& cluster);
int NumNodes(const Cluster& cluster);

}  // namespace weir

#endif  // WEIR_SCENARIOS_CLUSTER_H_
