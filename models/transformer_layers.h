// SPDX-License-Identifier: Apache-2.0
// The three kinds of transformer layer. Element-wise kernels are fused as in
// Megatron-LM: bias with GELU, bias with dropout and residual.
#ifndef WEIR_MODELS_TRANSFORMER_LAYERS_H_
#define WEIR_MODELS_TRANSFORMER_LAYERS_H_

#include "models/layer_work.h"

namespace weir {

LayerWork EmbeddingWork(const Transformer& transformer, const WorkSpec& spec);
LayerWork BlockWork(const Transformer& transformer, const WorkSpec& spec);
LayerWork HeadWork(const Transformer& transformer, const WorkSpec& spec);

}  // namespace weir

#endif  // WEIR_MODELS_TRANSFORMER_LAYERS_H_
