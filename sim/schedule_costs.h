// SPDX-License-Identifier: Apache-2.0
// Costs and schedules meet here: what a schedule adds to the costs, and what an
// automatic schedule may know of them.
#ifndef WEIR_SIM_SCHEDULE_COSTS_H_
#define WEIR_SIM_SCHEDULE_COSTS_H_

#include "absl/status/status.h"
#include "scenarios/network.h"
#include "scenarios/scenario.h"
#include "schedules/schedule.h"
#include "sim/stage_costs.h"

namespace weir {

// Prices what only some schedules do: estimates of weights, compressed
// transfers, inference. (Costs by hand say the seconds themselves.)
// InvalidArgument where the costs cannot say what the schedule needs: a split
// backward of layers that were measured whole, an offload over a host link that
// neither cluster nor device know.
absl::Status ApplySchedule(const ResolvedScenario& scenario,
                           const Network& network, const Schedule& schedule,
                           Costs* costs);

// For a generator that orders by costs: seconds and bytes of each stage. A hop
// takes as long as the slowest transfer between ranks that follow each other,
// alone on its links.
PassCosts PassCostsOf(const ResolvedScenario& scenario, const Network& network,
                      const Costs& costs);

}  // namespace weir

#endif  // WEIR_SIM_SCHEDULE_COSTS_H_
