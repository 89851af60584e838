// SPDX-License-Identifier: Apache-2.0
// Sizes that all layers of a transformer share, for one GPU of the
// tensor-parallel group.
#ifndef WEIR_MODELS_SHAPE_H_
#define WEIR_MODELS_SHAPE_H_

#include "models/layer_work.h"
#include "models/parameters.h"

namespace weir::models {

struct Shape {
  double tensor_parallel = 1;
  double sequences = 0;
  // Of the microbatch, on one context-parallel rank.
  double sequence_length = 0;
  double tokens = 0;
  // Tokens held outside the tensor-parallel GEMMs: all, or 1/t of them with
  // sequence parallelism.
  double local_tokens = 0;
  double hidden = 0;
  double heads = 0;
  double head_size = 0;
  double value_part = 1;       // head size of values / head_size
  double query = 0;            // width of the queries
  double key_value = 0;        // width of the keys
  double key_value_share = 0;  // 1/t of the whole; less if heads are repeated
  double feed_forward = 0;
  double feed_forward_inputs = 1;  // matrices that read the input; 2 if gated
  double vocabulary = 0;           // of one GPU, padded
  double vocabulary_needed = 1;    // part of it without padding
  double element_bytes = 2;
  double mask_bytes = 0;  // per element with dropout; else 0

  double value() const { return value_part * key_value; }  // width of values
  double output() const { return value_part * query; }     // of their sums
};

Shape ShapeOf(const Transformer& transformer, const WorkSpec& spec);

// Returns the vocabulary padded to a multiple of spec.vocabulary_multiple x t.
double PaddedVocabulary(const Transformer& transformer, const WorkSpec& spec);

double PerGpu(const ParameterCount& count, const Transformer& transformer,
              int tensor_parallel);

// Returns the bytes of the hidden states of the tokens that this GPU holds
// outside the tensor-parallel GEMMs, and of all of the microbatch.
double LocalBytes(const Shape& shape);
double WholeBytes(const Shape& shape);

}  // namespace weir::models

#endif  // WEIR_MODELS_SHAPE_H_
