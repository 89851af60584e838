// SPDX-License-Identifier: Apache-2.0
// Kernels that linear recurrences over the tokens of a sequence share. A
// sequence is divided into chunks; within a chunk the recurrence is a product
// of matrices, between chunks a state is passed on.
#ifndef WEIR_MODELS_LINEAR_RECURRENCE_H_
#define WEIR_MODELS_LINEAR_RECURRENCE_H_

#include "models/layer_work.h"
#include "models/shape.h"

namespace weir::models {

// Adds `count` GEMMs per chunk of (m x k) by (k x n) to the forward, and the
// two GEMMs of its gradients to the backward.
void AddChunkGemm(const Shape& shape, double count, double m, double n,
                  double k, LayerWork* work);

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

// Adds a causal convolution along the sequence, one filter per channel, with
// its activation. Saves its output; `channels` on this GPU.
void AddConvolution(const Shape& shape, double channels, LayerWork* work);

}  // namespace weir::models

#endif  // WEIR_MODELS_LINEAR_RECURRENCE_H_
