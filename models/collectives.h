// SPDX-License-Identifier: Apache-2.0
// What a tensor-parallel group says to itself around its products (Shoeybi et
// al. 2019, section 3; with sequence parallelism Korthikanti et al. 2022,
// section 4.2.2). Nothing in a group of one.
#ifndef WEIR_MODELS_COLLECTIVES_H_
#define WEIR_MODELS_COLLECTIVES_H_

#include <vector>

#include "models/layer_work.h"

namespace weir {

// Adds a collective, or counts it with the last one if that is equal.
void AddCollective(const LayerCollective& collective,
                   std::vector<LayerCollective>* collectives);

// The same at the front: a backward runs the other way round.
void AddFrontCollective(const LayerCollective& collective,
                        std::vector<LayerCollective>* collectives);

// Around a product split by its columns: its input of `bytes` is needed whole,
// and so is the sum of its gradients.
void AddColumnInput(const WorkSpec& spec, double bytes, LayerWork* work);

// Behind a product split by its rows, or a split table: the parts of the output
// of `bytes` are summed up.
void AddRowOutput(const WorkSpec& spec, double bytes, LayerWork* work);

// The backward begins with everything that the forward said.
void RepeatForwardCollectives(LayerWork* work);

}  // namespace weir

#endif  // WEIR_MODELS_COLLECTIVES_H_
