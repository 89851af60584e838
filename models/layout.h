// SPDX-License-Identifier: Apache-2.0
// Parses Megatron-LM's --pipeline-model-parallel-layout: the layers of each
// stage, in the order of the stages. "Et*3|(tt|)*2,m|L" is a stage with the
// embedding and three blocks, two stages with two blocks each, a stage with an
// MTP layer, and a stage with the head and the loss.
//
//   layout = *( item | "|" | "," )       ; "|" ends a stage, "," is ignored
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

namespace weir::models {

// The letters of every stage, in order. A stage may be empty.
using StageLayout = std::vector<std::string>;

// Returns the stages of a layout, or InvalidArgument "<label>:<column>: ..."
// for a syntax error.
absl::StatusOr<StageLayout> ParseLayout(absl::string_view label,
                                        absl::string_view text);

// Returns the layout of stages with these numbers of blocks, with the embedding
// in the first and the head in the last: "Et*3|t*2|L". MTP modules are in the
// last stage, or in the one before if `mtp_apart`.
std::string LayoutText(const std::vector<int>& blocks, int mtp_modules = 0,
                       bool mtp_apart = false);

// Returns the number of blocks in the layout.
int CountBlocks(const StageLayout& layout);

// Cuts the layers at the stage boundaries of the layout. Returns
// InvalidArgument unless the layout has exactly the model's layers in their
// order, with all MTP modules in one stage (Megatron-LM,
// pipeline_parallel_layer_layout.py).
absl::StatusOr<Partition> PartitionByLayout(const LayerList& layers,
                                            const StageLayout& layout);

}  // namespace weir::models

#endif  // WEIR_MODELS_LAYOUT_H_
