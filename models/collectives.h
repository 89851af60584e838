// SPDX-License-Identifier: Apache-2.0
// Collectives of a tensor-parallel group around its GEMMs (Shoeybi et al. 2019,
// section 3; with sequence parallelism Korthikanti et al. 2022, section 4.2.2).
// A group of one has none.
#ifndef WEIR_MODELS_COLLECTIVES_H_
#define WEIR_MODELS_COLLECTIVES_H_

#include <vector>

#include "models/layer_work.h"

namespace weir::models {

// Transformer Engine's default number of splits of an overlapped
// reduce-scatter.
inline constexpr int kReduceScatterPieces = 4;

// Appends a collective, or adds its count to the last one if they are otherwise
// equal.
void AddCollective(const LayerCollective& collective,
                   std::vector<LayerCollective>* collectives);

// Does the same at the front, because a backward runs in reverse order.
void AddFrontCollective(const LayerCollective& collective,
                        std::vector<LayerCollective>* collectives);

// Adds the collectives of a linear layer that is split by columns: the
// all-gather of its input with sequence parallelism, and the reduction of the
// input's gradient. `bytes` is the size of the whole input.
void AddColumnInput(const WorkSpec& spec, double bytes, LayerWork* work);

// Adds the collective that sums the output of a linear layer that is split by
// rows, or of a split embedding table. `bytes` is the size of the whole output.
void AddRowOutput(const WorkSpec& spec, double bytes, LayerWork* work);

// Repeats collectives of a forward at the beginning of the backward, for
// recomputation.
void RepeatCollectives(const std::vector<LayerCollective>& forward,
                       LayerWork* work);
// Repeats the forward's collectives at the beginning of the backward.
void RepeatForwardCollectives(LayerWork* work);
// Repeats only its all-gathers.
void RepeatGathers(LayerWork* work);

}  // namespace weir::models

#endif  // WEIR_MODELS_COLLECTIVES_H_
