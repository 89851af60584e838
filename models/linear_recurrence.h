// SPDX-License-Identifier: Apache-2.0
// Kernels that linear recurrences over the tokens of a sequence share. A
// sequence is divided into chunks; within a chunk the recurrence is a product
// of matrices, between chunks a state is passed on.
#ifndef WEIR_MODELS_LINEAR_RECURRENCE_H_
#define WEIR_MODELS_LINEAR_RECURRENCE_H_

#include "models/layer_work.h"
#include "models/shape.h"

namespace weir::models {

// The recurrence S <- a S + b x^T, y = c^T S of each head, with scalar decays a
// (Dao and Gu 2024, section 6; Qin et al. 2024, lightning attention).
struct DecayRecurrence {
  double heads = 0;
  double groups = 0;      // of heads with the same b and c
  double key_size = 0;    // of b and c
  double value_size = 0;  // of x and y
  double chunk = 0;       // tokens
};

// Adds per chunk of Q tokens, for keys of N and values of P elements: c b^T of
// each group (Q x Q x N); its product with x (Q x P x Q), the chunk's state
// (N x P x Q) and the product of c with the state (Q x P x N) of each head; and
// one pass that writes and reads the states in fp32.
void AddDecayRecurrence(const Shape& shape, const DecayRecurrence& recurrence,
                        LayerWork* work);

// The gated delta rule of each head (Yang et al. 2025, section 3.3).
struct DeltaRecurrence {
  double heads = 0;
  double key_size = 0;
  double value_size = 0;
};

// Adds per chunk of C tokens, for keys of K and values of V elements: products
// of keys with keys and with queries (C x C x K), the inverse of a triangular
// matrix (C x C x C), its products with keys and values (C x K x C, C x V x C),
// products with the state (2 times C x V x K), the next state (K x V x C) and
// the product of scores and values (C x V x C); and one pass over the states in
// fp32.
void AddDeltaRecurrence(const Shape& shape, const DeltaRecurrence& recurrence,
                        LayerWork* work);

// Adds a causal convolution along the sequence, one filter per channel, with
// its activation. Saves its output; `channels` on this GPU.
void AddConvolution(const Shape& shape, double channels, LayerWork* work);

}  // namespace weir::models

#endif  // WEIR_MODELS_LINEAR_RECURRENCE_H_
