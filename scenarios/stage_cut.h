// SPDX-License-Identifier: Apache-2.0
// Assigns the layers of a scenario to stages.
#ifndef WEIR_SCENARIOS_STAGE_CUT_H_
#define WEIR_SCENARIOS_STAGE_CUT_H_

#include <vector>

#include "absl/status/statusor.h"
#include "models/layer_list.h"
#include "models/partition.h"
#include "scenarios/scenario.h"

namespace weir::scenarios {

// Returns the stages by the scenario's layout or blocks_per_stage, otherwise
// with equal numbers of blocks (measured model: balanced). Returns
// InvalidArgument with the field's name.
absl::StatusOr<models::Partition> CutIntoStages(
    const ResolvedScenario& resolved, const models::LayerList& layers,
    int num_stages);

}  // namespace weir::scenarios

#endif  // WEIR_SCENARIOS_STAGE_CUT_H_
