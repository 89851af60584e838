// SPDX-License-Identifier: Apache-2.0
#include "scenarios/cluster/cluster.h"

#include "absl/strings/str_cat.h"
#include "base/assets.h"
#include "base/status_macros.h"
#include "base/textproto.h"
#include "scenarios/cluster/cluster_changes.h"

namespace weir::scenarios {

absl::StatusOr<Cluster> LoadCluster(const std::string& name_or_path,
                                    int num_nodes,
                                    const ClusterChanges& changes) {
  ASSIGN_OR_RETURN(const Asset asset,
                   LoadAsset("scenarios/cluster/presets", name_or_path));
  Cluster cluster;
  RETURN_IF_ERROR(ParseTextProto(asset.label, asset.contents, &cluster));
  RETURN_IF_ERROR(ChangeCluster(name_or_path, changes, &cluster));
  if (num_nodes > 0) {
    if (cluster.groups_size() != 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          asset.label, ": num_nodes ", num_nodes, " is ambiguous for the ",
          cluster.groups_size(),
          " node groups of the cluster, expected a cluster with one group"));
    }
    cluster.mutable_groups(0)->set_count(num_nodes);
  }
  RETURN_IF_ERROR(ValidateCluster(asset.label, cluster));
  return cluster;
}

int NumGpus(const Cluster& cluster) {
  int num_gpus = 0;
  for (const NodeGroup& group : cluster.groups())
    num_gpus += group.count() * group.node().num_gpus();
  return num_gpus;
}

int NumNodes(const Cluster& cluster) {
  int num_nodes = 0;
  for (const NodeGroup& group : cluster.groups()) num_nodes += group.count();
  return num_nodes;
}

}  // namespace weir::scenarios
