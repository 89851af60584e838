// SPDX-License-Identifier: Apache-2.0
// Execution options of layers, derived from a scenario and its training
// framework.
#ifndef WEIR_SIM_COSTS_WORK_SPEC_H_
#define WEIR_SIM_COSTS_WORK_SPEC_H_

#include "models/layer_work.h"
#include "scenarios/scenario.h"

namespace weir::sim {

models::WorkSpec MakeWorkSpec(const scenarios::ResolvedScenario& resolved);

}  // namespace weir::sim

#endif  // WEIR_SIM_COSTS_WORK_SPEC_H_
