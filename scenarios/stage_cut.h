// SPDX-License-Identifier: Apache-2.0
// Which layers each stage of a scenario has.
#ifndef WEIR_SCENARIOS_STAGE_CUT_H_
#define WEIR_SCENARIOS_STAGE_CUT_H_

#include <vector>

#include "absl/status/statusor.h"
#include "models/layer_list.h"
#include "models/partition.h"
#include "scenarios/scenario.h"

namespace weir {

// By the scenario's layout or blocks_per_stage, else an equal share of the
// blocks (of a measured model: balanced). InvalidArgument names the field.
absl::StatusOr<Partition> CutIntoStages(const ResolvedScenario& resolved,
                                        const LayerList& layers,
                                        int num_stages);

}  // namespace weir

#endif  // WEIR_SCENARIOS_STAGE_CUT_H_
