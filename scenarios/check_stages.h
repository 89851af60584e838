// SPDX-License-Identifier: Apache-2.0
// Checks of the number of stages against the model.
#ifndef WEIR_SCENARIOS_CHECK_STAGES_H_
#define WEIR_SCENARIOS_CHECK_STAGES_H_

#include "base/problems.h"
#include "models/model.pb.h"
#include "scenarios/scenario.pb.h"

namespace weir::scenarios {

// Checks that the stages are not more than the blocks (or measured layers), and
// that the blocks divide evenly unless blocks_per_stage or a layout is given.
// Suggests the nearest numbers of stages that divide, and if `divides_gpus`
// only those that also divide the GPUs of all replicas.
void CheckStages(Problems& problems, const Parallelism& parallelism,
                 const Model& model, bool divides_gpus);

}  // namespace weir::scenarios

#endif  // WEIR_SCENARIOS_CHECK_STAGES_H_
