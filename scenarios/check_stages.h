// SPDX-License-Identifier: Apache-2.0
// Checks of the number of stages against the model.
#ifndef WEIR_SCENARIOS_CHECK_STAGES_H_
#define WEIR_SCENARIOS_CHECK_STAGES_H_

#include "base/problems.h"
#include "models/model.pb.h"
#include "scenarios/scenario.pb.h"

namespace weir::scenarios {

// Adds a problem if there are more stages than blocks (or measured layers), or
// if the stages do not divide the blocks. Does nothing if the partition is
// given (blocks_per_stage, a layout, or blocks of the first or last rank).
// Suggests the nearest numbers of stages that divide, and if `divides_gpus`
// only those that also divide the GPUs of all replicas.
void CheckStages(Problems& problems, const Parallelism& parallelism,
                 const Model& model, bool divides_gpus);

}  // namespace weir::scenarios

#endif  // WEIR_SCENARIOS_CHECK_STAGES_H_
