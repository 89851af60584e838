// SPDX-License-Identifier: Apache-2.0
// The GPUs of a scenario.
#ifndef WEIR_SCENARIOS_PLACE_SCENARIO_H_
#define WEIR_SCENARIOS_PLACE_SCENARIO_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "scenarios/cluster/cluster.pb.h"
#include "scenarios/cluster/placement.h"
#include "scenarios/scenario.pb.h"

namespace weir::scenarios {

// Returns InvalidArgument if the cluster has too few GPUs, with the number of
// nodes and the data-parallel size that would be enough. `label`: the file of
// the scenario.
absl::Status CheckNumGpus(const std::string& label,
                          const Parallelism& parallelism,
                          const Cluster& cluster);

// Places the ranks in the order of the scenario, or on the GPUs that it lists.
// Context-parallel ranks are neighbors among the replicas. Returns
// InvalidArgument if there are fewer than the ranks need.
absl::StatusOr<Placement> MakePlacement(const std::string& label,
                                        const Parallelism& parallelism,
                                        int num_gpus_available);

}  // namespace weir::scenarios

#endif  // WEIR_SCENARIOS_PLACE_SCENARIO_H_
