// SPDX-License-Identifier: Apache-2.0
// What mixes the tokens of a block: attention, its variants, and linear
// recurrences. Each source has the parameters and the work of one of them, from
// the output of the norm before it to the projection of its result.
#ifndef WEIR_MODELS_MIXERS_H_
#define WEIR_MODELS_MIXERS_H_

#include "models/attention.h"
#include "models/kernels.h"
#include "models/layer_work.h"
#include "models/parameters.h"
#include "models/shape.h"

namespace weir::models {

// Returns the parameters of Transformer.mixer, or of attention.
ParameterCount MixerParameters(const Transformer& transformer);

// Adds kernels, collectives, saved bytes except core.stash_bytes, and bytes
// saved for backward-weight. Returns the core of the attention, whose kernels
// have been added, too.
AttentionCore AddMixer(const Transformer& transformer, const WorkSpec& spec,
                       const Shape& shape, LayerWork* work);

// Plain attention.
ParameterCount AttentionParameters(const Transformer& transformer);
AttentionCore AddAttention(const Transformer& transformer, const WorkSpec& spec,
                           const Shape& shape, LayerWork* work);

// LatentAttention.
ParameterCount LatentAttentionParameters(const Transformer& transformer);
AttentionCore AddLatentAttention(const Transformer& transformer,
                                 const WorkSpec& spec, const Shape& shape,
                                 LayerWork* work);

// Returns what makes queries, keys and values of the latent vectors:
// projections and rotation. They are its saved bytes.
LayerWork LatentExpansion(const Transformer& transformer, const WorkSpec& spec,
                          const Shape& shape);

// CompressedAttention.
ParameterCount CompressedAttentionParameters(const Transformer& transformer);
AttentionCore AddCompressedAttention(const Transformer& transformer,
                                     const WorkSpec& spec, const Shape& shape,
                                     LayerWork* work);

// SparseIndex. `query_input` is the width of the vectors from which the
// queries of the index are projected.
ParameterCount SparseIndexParameters(const Transformer& transformer,
                                     double query_input);
void AddSparseIndex(const Transformer& transformer, const WorkSpec& spec,
                    const Shape& shape, double query_input, LayerWork* work);

// Mamba2.
ParameterCount Mamba2Parameters(const Transformer& transformer);
AttentionCore AddMamba2(const Transformer& transformer, const WorkSpec& spec,
                        const Shape& shape, LayerWork* work);

// DeltaNet.
ParameterCount DeltaNetParameters(const Transformer& transformer);
AttentionCore AddDeltaNet(const Transformer& transformer, const WorkSpec& spec,
                          const Shape& shape, LayerWork* work);

// LightningAttention.
ParameterCount LightningAttentionParameters(const Transformer& transformer);
AttentionCore AddLightningAttention(const Transformer& transformer,
                                    const WorkSpec& spec, const Shape& shape,
                                    LayerWork* work);

// Returns how the input of the attention output projection is saved. With fused
// attention it is shared: the attention backward reads it too.
inline Linear::Input OutputInput(const WorkSpec& spec) {
  return spec.flash_attention ? Linear::Input::kKept : Linear::Input::kOwn;
}

// Inserts the kernels of an attention core.
void AddCore(const AttentionCore& core, LayerWork* work);

// Adds a linear layer of all tokens that every GPU of the tensor-parallel group
// repeats: its weights are not split. `local`: with sequence parallelism each
// GPU has only its own tokens.
void AddRepeatedLinear(const WorkSpec& spec, const Shape& shape, double in,
                       double out, bool local, LayerWork* work,
                       Linear::Input input = Linear::Input::kShared);

// Adds the multiplication of `elements` outputs by a gate after a sigmoid.
// `gates` elements of the gate are read.
void AddGate(const Shape& shape, double elements, double gates,
             LayerWork* work);

}  // namespace weir::models

#endif  // WEIR_MODELS_MIXERS_H_
