// SPDX-License-Identifier: Apache-2.0
// The interface of costs and schedules: what a schedule adds to the costs, and
// the costs that an automatic schedule may use.
#ifndef WEIR_SIM_COSTS_SCHEDULE_COSTS_H_
#define WEIR_SIM_COSTS_SCHEDULE_COSTS_H_

#include "absl/status/status.h"
#include "scenarios/cluster/network.h"
#include "scenarios/scenario.h"
#include "schedules/schedule.h"
#include "sim/costs/stage_costs.h"

namespace weir::sim {

// Adds the costs that only some schedules have: weight estimates, compressed
// transfers, inference. (Given costs contain these seconds.) Returns
// InvalidArgument if the schedule does not fit the costs: a split backward of
// layers that were measured whole, an offload over a host link that neither
// cluster nor device specifies, sharded states without a flush.
absl::Status ApplySchedule(const scenarios::ResolvedScenario& scenario,
                           const scenarios::Network& network,
                           const schedules::Schedule& schedule, Costs* costs);

// Returns the seconds and bytes of each stage, for a generator that orders by
// costs. A hop takes the uncontended time of the slowest transfer between
// consecutive ranks.
schedules::PassCosts PassCostsOf(const scenarios::ResolvedScenario& scenario,
                                 const scenarios::Network& network,
                                 const Costs& costs);

}  // namespace weir::sim

#endif  // WEIR_SIM_COSTS_SCHEDULE_COSTS_H_
