// SPDX-License-Identifier: Apache-2.0
// Megatron-LM's --pipeline-model-parallel-layout: which layers each stage
// holds, in the order of the stages. "Et*3|(tt|)*2,m|L" is the embedding and
// three layers, twice two layers, an MTP layer, and the head with the loss.
//
//   layout = *( item | "|" | "," )       ; "|" ends a stage, "," means nothing
//   item   = ( letter | "(" layout ")" ) [ "*" count ]
//   letter = "E" (embedding) | "t" (block) | "m" (MTP) | "L" (head and loss)
#ifndef WEIR_MODELS_LAYOUT_H_
#define WEIR_MODELS_LAYOUT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/layer_list.h"
#include "models/partition.h"

namespace weir {

// The letters of every stage, in order; a stage may be empty.
using StageLayout = std::vector<std::string>;

// InvalidArgument "<label>:<column>: ..." for what the grammar does not have.
absl::StatusOr<StageLayout> ParseLayout(absl::string_view label,
                                        absl::string_view text);

// Blocks in the layout.
int CountBlocks(const StageLayout& layout);

// Cuts the layers where the layout does. InvalidArgument when it does not hold
// exactly the model's layers in their order.
absl::StatusOr<Partition> PartitionByLayout(const LayerList& layers,
                                            const StageLayout& layout);

}  // namespace weir

#endif  // WEIR_MODELS_LAYOUT_H_
