// SPDX-License-Identifier: Apache-2.0
// Memory traffic of the optimizer step.
#ifndef WEIR_SIM_COSTS_OPTIMIZER_STEP_H_
#define WEIR_SIM_COSTS_OPTIMIZER_STEP_H_

#include "calibrate/profile/runtime.pb.h"
#include "scenarios/scenario.pb.h"
#include "sim/costs/stage_costs.h"

namespace weir::sim {

// Returns true if the step copies 16-bit gradients to fp32.
bool WidensGradients(const Runtime& runtime, const Training& training);

// Returns the bytes that one step of all parameters of a stage reads and
// writes. The step of any runtime reads gradients and states, and writes states
// and weights; without fp32 master weights among the states, it also reads the
// weights. A stage that keeps more than one version first copies the one that
// it replaces, unless the runtime writes the new one to memory of its own. The
// runtime's switches add passes over the gradients and weights (Runtime in
// calibrate/profile/runtime.proto).
double OptimizerStepBytes(const StageParameters& parameters,
                          const Training& training, const Runtime& runtime,
                          int num_versions);

}  // namespace weir::sim

#endif  // WEIR_SIM_COSTS_OPTIMIZER_STEP_H_
