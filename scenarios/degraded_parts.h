// SPDX-License-Identifier: Apache-2.0
// Parts of the cluster that a scenario makes slower or removes.
#ifndef WEIR_SCENARIOS_DEGRADED_PARTS_H_
#define WEIR_SCENARIOS_DEGRADED_PARTS_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "scenarios/cluster/cluster.pb.h"
#include "scenarios/scenario.pb.h"

namespace weir::scenarios {

// Adds the slow parts, failed links and background traffic of the scenario to
// its cluster, unless they are invalid. Returns what is wrong with them or, if
// they are valid, which changes of the cluster have no effect on it.
std::vector<absl::Status> AddDegradedParts(absl::string_view label,
                                           const Scenario& scenario,
                                           Cluster* cluster);

}  // namespace weir::scenarios

#endif  // WEIR_SCENARIOS_DEGRADED_PARTS_H_
