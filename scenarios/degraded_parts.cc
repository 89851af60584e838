// SPDX-License-Identifier: Apache-2.0
#include "scenarios/degraded_parts.h"

#include <algorithm>
#include <utility>

#include "scenarios/cluster/cluster_changes.h"
#include "scenarios/cluster/degraded_links.h"
#include "scenarios/cluster/slow_parts.h"

namespace weir::scenarios {

std::vector<absl::Status> AddDegradedParts(absl::string_view label,
                                           const Scenario& scenario,
                                           Cluster* cluster) {
  std::vector<absl::Status> failures;
  if (!scenario.slow().empty()) {
    cluster->mutable_slow()->MergeFrom(scenario.slow());
    failures.push_back(CheckSlowParts(label, *cluster));
    if (!failures.back().ok()) cluster->clear_slow();
  }
  if (!scenario.failed().empty() || !scenario.background().empty()) {
    Cluster degraded = *cluster;
    degraded.mutable_failed()->MergeFrom(scenario.failed());
    degraded.mutable_background()->MergeFrom(scenario.background());
    failures.push_back(CheckDegradedLinks(label, degraded));
    if (failures.back().ok()) *cluster = std::move(degraded);
  }
  // Invalid parts are not in the cluster, so changes may seem to have no
  // effect.
  const bool all_valid =
      std::all_of(failures.begin(), failures.end(),
                  [](const absl::Status& status) { return status.ok(); });
  if (all_valid) {
    failures.push_back(CheckEffectOfChanges(
        scenario.cluster(), scenario.cluster_changes(), *cluster));
  }
  return failures;
}

}  // namespace weir::scenarios
