// SPDX-License-Identifier: Apache-2.0
// Changes the network of a cluster, for what-if questions: "the same nodes in a
// dragonfly, with half the bandwidth between groups".
#ifndef WEIR_SCENARIOS_CLUSTER_CLUSTER_CHANGES_H_
#define WEIR_SCENARIOS_CLUSTER_CLUSTER_CHANGES_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "scenarios/cluster/cluster.pb.h"

namespace weir::scenarios {

inline constexpr int kMaxUplinks = 65536;  // of a leaf switch

// Applies the changes, but does not validate the result. Joining nodes into
// NVLink domains divides the number of nodes, rounded up. Returns
// InvalidArgument, starting with `label`, if the cluster does not have what is
// to be changed.
absl::Status ChangeCluster(absl::string_view label,
                           const ClusterChanges& changes, Cluster* cluster);

// Returns InvalidArgument if a change has no effect: uplinks of leaf switches
// if nothing depends on their number, because adaptive routing spreads messages
// evenly over all of them unless some have failed; Valiant routing in a
// dragonfly without a third group. `cluster`: valid, with the changes and with
// failed links.
absl::Status CheckEffectOfChanges(absl::string_view label,
                                  const ClusterChanges& changes,
                                  const Cluster& cluster);

}  // namespace weir::scenarios

#endif  // WEIR_SCENARIOS_CLUSTER_CLUSTER_CHANGES_H_
