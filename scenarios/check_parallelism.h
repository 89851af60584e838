// SPDX-License-Identifier: Apache-2.0
// Checks of the fields of parallelism alone.
#ifndef WEIR_SCENARIOS_CHECK_PARALLELISM_H_
#define WEIR_SCENARIOS_CHECK_PARALLELISM_H_

#include "base/problems.h"
#include "scenarios/scenario.pb.h"

namespace weir::scenarios {

// Checks the degrees of parallelism, the grid of experts, the groups of hybrid
// sharding, the GPUs and the blocks of each stage. Degrees of 0 mean 1.
void CheckParallelism(Problems& problems, const Scenario& scenario);

}  // namespace weir::scenarios

#endif  // WEIR_SCENARIOS_CHECK_PARALLELISM_H_
