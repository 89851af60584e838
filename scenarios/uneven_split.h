// SPDX-License-Identifier: Apache-2.0
// Megatron-LM's options that give the first and the last pipeline rank other
// numbers of blocks (docs/layouts.md).
#ifndef WEIR_SCENARIOS_UNEVEN_SPLIT_H_
#define WEIR_SCENARIOS_UNEVEN_SPLIT_H_

#include "base/problems.h"
#include "models/model.pb.h"
#include "scenarios/scenario.pb.h"

namespace weir::scenarios {

// Returns true if the parallelism has one of these options.
bool SplitsUnevenly(const Parallelism& parallelism);

void ClearUnevenSplit(Parallelism* parallelism);

// Checks that they are not combined with another partition.
void CheckUnevenSplit(Problems& problems, const Parallelism& parallelism);

// Replaces them by blocks_per_stage, or by a layout if a stage has no blocks.
// Adds a problem if the blocks cannot be divided so. With several stages per
// rank, each stage of a rank has an equal part of its blocks, and the embedding
// and the head count in the first and the last stage (Megatron-LM,
// get_num_layers_to_build).
void FillUnevenSplit(Problems& problems, const Model& model,
                     Parallelism* parallelism);

}  // namespace weir::scenarios

#endif  // WEIR_SCENARIOS_UNEVEN_SPLIT_H_
