// SPDX-License-Identifier: Apache-2.0
// Trained parameters of each part of a transformer, by how tensor parallelism
// treats them (Shoeybi et al. 2019).
#ifndef WEIR_MODELS_PARAMETERS_H_
#define WEIR_MODELS_PARAMETERS_H_

#include "models/model.pb.h"

namespace weir {

struct ParameterCount {
  double split = 0;       // each GPU of the group holds 1/t
  double key_value = 0;   // split by key-value heads, repeated when t is larger
  double replicated = 0;  // every GPU holds all

  double Whole() const { return split + key_value + replicated; }
};

ParameterCount EmbeddingParameters(const Transformer& transformer);
// Of block `index`: does it have experts?
bool HasExperts(const Transformer& transformer, int index);
// Without its routed experts if it has any.
ParameterCount BlockParameters(const Transformer& transformer, bool experts);
// All routed experts of one block.
double ExpertParameters(const Transformer& transformer);
// Without the output projection where that is the token embedding.
ParameterCount HeadParameters(const Transformer& transformer);
// Token embedding that a head far from the embedding keeps a copy of; 0 when
// the embeddings are not tied or the model has no logits.
double TiedParameters(const Transformer& transformer);

// False for a model that ends at its pooler.
bool HasLogits(const Transformer& transformer);

}  // namespace weir

#endif  // WEIR_MODELS_PARAMETERS_H_
