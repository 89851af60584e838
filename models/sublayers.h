// SPDX-License-Identifier: Apache-2.0
// Parts of a block. Each function adds the part's kernels, collectives, bytes
// saved for the backward and bytes saved for backward-weight.
#ifndef WEIR_MODELS_SUBLAYERS_H_
#define WEIR_MODELS_SUBLAYERS_H_

#include "models/kernels.h"
#include "models/layer_work.h"
#include "models/shape.h"

namespace weir::models {

// Adds a norm of the residual stream, after a residual or at the beginning of
// the block. The backward moves three tensors (gradient, input, output), and
// two more for the gradients of gain and shift. With fused_residual_norm, one
// kernel also adds the two gradients at the residual: it reads the input and
// both gradients and writes one.
void AddNorm(const WorkSpec& spec, const Shape& shape, bool after_residual,
             LayerWork* work);

// Two linear layers around an activation, `width` wide on each GPU, with `rows`
// input vectors of the hidden size; `batch` equal copies.
struct FeedForward {
  double batch = 1;
  double rows = 0;
  double width = 0;
  bool bias = false;
  double needed = 1;     // FLOP required over FLOP performed
  bool experts = false;  // whose collectives do not overlap piece by piece
  bool clamped = false;  // a gated activation that limits its inputs
  // Describe the first linear layer and the result; see Linear.
  Linear::Input input = Linear::Input::kOwn;
  bool from_norm = false;
  double local_rows = 0;
  OperandFormat input_format = OPERAND_16_BIT;
};
void AddFeedForward(const WorkSpec& spec, const Shape& shape,
                    const FeedForward& feed_forward, LayerWork* work);

// Adds the feed-forward layer of a block without experts, with the collectives
// around it. from_norm: see Linear.
void AddDenseFeedForward(const Transformer& transformer, const WorkSpec& spec,
                         const Shape& shape, bool from_norm, LayerWork* work);

// Adds router, token exchange, experts and shared experts, from the norm's
// output to the weighted sum. Experts of a GPU have equally many tokens, those
// of this GPU spec.expert_load times the mean. The
// order of kernels and exchanges is that of Megatron Core's all-to-all token
// dispatcher.
void AddExperts(const Transformer& transformer, const WorkSpec& spec,
                const Shape& shape, LayerWork* work);
// Adds only the feed-forward layers of the routed experts.
void AddRoutedExperts(const Transformer& transformer, const WorkSpec& spec,
                      const Shape& shape, LayerWork* work);
// Adds only the shared experts; the last kernel of the forward adds their
// output to that of the others.
void AddSharedExperts(const Transformer& transformer, const WorkSpec& spec,
                      const Shape& shape, LayerWork* work);

}  // namespace weir::models

#endif  // WEIR_MODELS_SUBLAYERS_H_
