// SPDX-License-Identifier: Apache-2.0
// Activations and optimizer states that the host keeps (docs/offload.md).
#ifndef WEIR_SIM_COSTS_HOST_OFFLOAD_H_
#define WEIR_SIM_COSTS_HOST_OFFLOAD_H_

#include <vector>

#include "absl/status/status.h"
#include "models/layer_list.h"
#include "scenarios/cluster/network.h"
#include "scenarios/scenario.h"
#include "schedules/schedule.h"
#include "sim/costs/stage_costs.h"
#include "sim/costs/stage_layers.h"

namespace weir::sim {

// Returns, for the first n of `num_blocks` blocks, the block after whose
// forward their copies to the host must have ended. The windows between these
// blocks are of nearly equal length (Transformer Engine, layer_window_map in
// cpu_offload.py). Requires: n < num_blocks.
std::vector<int> OffloadWindowEnds(int num_blocks, int n);

// Offloads the activations of the first `num_layers` blocks of a stage with
// layers [first, last), at most all but one: sets the windows that its passes
// have for the copies, and removes the bytes from the stage's saved
// activations.
void OffloadActivations(const models::LayerList& layers, int first, int last,
                        int num_layers, LayerPrices* prices, StageCosts* stage);

// Moves a fraction of the optimizer states of a stage to the host, with their
// part of the step. `step_bytes`: memory traffic of the whole step on this GPU;
// `stepped_part`: see Costs.
void OffloadOptimizer(double fraction, double stepped_part, double step_bytes,
                      StageCosts* stage);

// Adds the seconds of copies and of steps on the host that nothing overlaps.
// All GPUs of a node copy at the same time and share its links.
// Returns InvalidArgument if a GPU has no link to its host, or if the schedule
// splits backward passes, whose windows are not known. Requires: with an
// offloaded optimizer, the runtime has the host's rate.
absl::Status ApplyHostOffload(const scenarios::ResolvedScenario& scenario,
                              const scenarios::Network& network,
                              const schedules::Schedule& schedule,
                              Costs* costs);

}  // namespace weir::sim

#endif  // WEIR_SIM_COSTS_HOST_OFFLOAD_H_
