// SPDX-License-Identifier: Apache-2.0
// Layers of a transformer.
#ifndef WEIR_MODELS_TRANSFORMER_LAYERS_H_
#define WEIR_MODELS_TRANSFORMER_LAYERS_H_

#include "models/block_spec.h"
#include "models/layer_work.h"

namespace weir::models {

LayerWork EmbeddingWork(const Transformer& transformer, const WorkSpec& spec);
LayerWork BlockWork(const BlockSpec& block, const WorkSpec& spec);
LayerWork HeadWork(const Transformer& transformer, const WorkSpec& spec);

// Adds an encoder of images, in front of the embedding.
void AddEncoder(const Transformer& transformer, const WorkSpec& spec,
                LayerWork* embedding);
// Returns an MTP module without its pass through the head. Its output is that
// of all modules.
LayerWork MtpWork(const Transformer& transformer, const WorkSpec& spec);
// Returns a part of the embedding and of the logits, on one of
// spec.vocabulary_shards pipeline ranks.
LayerWork VocabularyShardWork(const Transformer& transformer,
                              const WorkSpec& spec);
// Returns the parameters of the table of token embeddings on one GPU.
double TablePerGpu(const Transformer& transformer, const WorkSpec& spec);
// Adds the kernels, collectives, parameters and bytes of a layer that runs
// after those of `work` in the forward, `times` times.
void AppendLayer(const LayerWork& layer, int times, LayerWork* work);

}  // namespace weir::models

#endif  // WEIR_MODELS_TRANSFORMER_LAYERS_H_
