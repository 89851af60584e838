// SPDX-License-Identifier: Apache-2.0
// Finds values of a cluster that are probably in the wrong unit.
#ifndef WEIR_SCENARIOS_CLUSTER_PLAUSIBILITY_H_
#define WEIR_SCENARIOS_CLUSTER_PLAUSIBILITY_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "scenarios/cluster/cluster.pb.h"

namespace weir::scenarios {

// Returns a warning for every rate below 1 MB/s or above 100 TB/s and for every
// latency above 0.1 s, with the label, which names the file, and the field.
std::vector<std::string> ImplausibleValues(absl::string_view label,
                                           const Cluster& cluster);

}  // namespace weir::scenarios

#endif  // WEIR_SCENARIOS_CLUSTER_PLAUSIBILITY_H_
