// SPDX-License-Identifier: Apache-2.0
// Trained parameters of each part of a transformer, by their treatment in
// tensor parallelism (Shoeybi et al. 2019).
#ifndef WEIR_MODELS_PARAMETERS_H_
#define WEIR_MODELS_PARAMETERS_H_

#include "models/block_spec.h"
#include "models/model.pb.h"

namespace weir::models {

struct ParameterCount {
  double split = 0;       // each GPU of the group holds 1/t
  double key_value = 0;   // split by key-value heads; repeated if t is larger
  double replicated = 0;  // held in full by every GPU

  double Whole() const { return split + key_value + replicated; }

  ParameterCount& operator+=(const ParameterCount& other) {
    split += other.split;
    key_value += other.key_value;
    replicated += other.replicated;
    return *this;
  }
};

// Returns the parameters of a norm of the hidden size.
double NormParameters(const Transformer& transformer);

// Returns the parameters of the embedding, without an encoder.
ParameterCount EmbeddingParameters(const Transformer& transformer);
// Returns the parameters of a block, without its routed experts if it has any.
ParameterCount BlockParameters(const BlockSpec& block);
// Returns the parameters of all routed experts of a block.
double ExpertParameters(const BlockSpec& block);
// Returns the parameters of the head, without the output projection if that is
// the token embedding, and without MTP modules.
ParameterCount HeadParameters(const Transformer& transformer);
// Returns the parameters of an MTP module besides its blocks: two norms of its
// inputs, their projection, and the norm before the head.
ParameterCount MtpProjectionParameters(const Transformer& transformer);
// Returns the parameters of an encoder with its projectors.
ParameterCount EncoderParameters(const Transformer& transformer);
// Returns the parameters of the copy of the token embedding that a head needs
// if it is on a different stage than the embedding; 0 if the embeddings are not
// tied or the model has no logits.
double TiedParameters(const Transformer& transformer);

// Returns the width of the shared experts together.
double SharedExpertWidth(const Transformer& transformer);
// Returns the width of the tokens that routed experts process.
double ExpertHidden(const Transformer& transformer);

// Returns false for a model that ends at its pooler.
bool HasLogits(const Transformer& transformer);

}  // namespace weir::models

#endif  // WEIR_MODELS_PARAMETERS_H_
