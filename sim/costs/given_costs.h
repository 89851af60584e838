// SPDX-License-Identifier: Apache-2.0
// Costs of stages that a scenario states.
#ifndef WEIR_SIM_COSTS_GIVEN_COSTS_H_
#define WEIR_SIM_COSTS_GIVEN_COSTS_H_

#include "scenarios/scenario.pb.h"
#include "sim/costs/stage_costs.h"

namespace weir::sim {

// Copies the costs of the scenario (seconds and bytes per microbatch) for
// `num_stages` stages. Requires: they have one entry, or one for each stage.
Costs GivenCostsOf(const Scenario& scenario, int num_stages);

}  // namespace weir::sim

#endif  // WEIR_SIM_COSTS_GIVEN_COSTS_H_
