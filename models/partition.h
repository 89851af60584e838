// SPDX-License-Identifier: Apache-2.0
// Cuts a chain of layers into contiguous stages.
#ifndef WEIR_MODELS_PARTITION_H_
#define WEIR_MODELS_PARTITION_H_

#include <vector>

#include "absl/status/statusor.h"
#include "models/layer_list.h"

namespace weir::models {

// Stage s holds layers [first[s], first[s + 1]). `first` has num_stages + 1
// entries, first[0] = 0, first[num_stages] = the number of layers.
struct Partition {
  std::vector<int> first;
};

// Returns stages with equal numbers of blocks, the embedding in the first and
// the head in the last (Megatron's rule). Returns InvalidArgument if the stages
// do not divide the blocks, or there are more stages than blocks.
absl::StatusOr<Partition> PartitionEvenly(const LayerList& layers,
                                          int num_stages);

// Returns stages with blocks_per_stage[s] blocks in stage s. Returns
// InvalidArgument if they do not sum to the number of blocks, or a stage has no
// layer.
absl::StatusOr<Partition> PartitionAsGiven(
    const LayerList& layers, const std::vector<int>& blocks_per_stage);

// Minimizes the largest sum of layer_seconds over all contiguous cuts (exact;
// ties go to the earliest cuts). Every stage has at least one layer. Returns
// InvalidArgument if num_stages is not between 1 and the number of layers, or a
// time is not in [0, 1e12].
absl::StatusOr<Partition> PartitionBalanced(
    const std::vector<double>& layer_seconds, int num_stages);

}  // namespace weir::models

#endif  // WEIR_MODELS_PARTITION_H_
