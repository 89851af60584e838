// SPDX-License-Identifier: Apache-2.0
// Layers of a transformer.
#ifndef WEIR_MODELS_TRANSFORMER_LAYERS_H_
#define WEIR_MODELS_TRANSFORMER_LAYERS_H_

#include "models/layer_work.h"

namespace weir::models {

LayerWork EmbeddingWork(const Transformer& transformer, const WorkSpec& spec);
// Returns a block, with a mixture of experts instead of the feed-forward layer
// if `experts`.
LayerWork BlockWork(const Transformer& transformer, const WorkSpec& spec,
                    bool experts);
LayerWork HeadWork(const Transformer& transformer, const WorkSpec& spec);

}  // namespace weir::models

#endif  // WEIR_MODELS_TRANSFORMER_LAYERS_H_
