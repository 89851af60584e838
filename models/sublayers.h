// SPDX-License-Identifier: Apache-2.0
// Parts of a block. Each function adds the part's kernels, collectives, bytes
// saved for the backward and bytes saved for backward-weight.
#ifndef WEIR_MODELS_SUBLAYERS_H_
#define WEIR_MODELS_SUBLAYERS_H_

#include "models/kernels.h"
#include "models/layer_work.h"
#include "models/shape.h"

namespace weir::models {

// Two linear layers around an activation, `width` wide on each GPU, with `rows`
// input vectors of the hidden size; `batch` equal copies.
struct FeedForward {
  double batch = 1;
  double rows = 0;
  double width = 0;
  bool bias = false;
  double needed = 1;     // FLOP required over FLOP performed
  bool experts = false;  // whose collectives do not overlap piece by piece
  // Of the first linear layer, and of the result, see Linear.
  Linear::Input input = Linear::Input::kOwn;
  bool from_norm = false;
  double local_rows = 0;
};
void AddFeedForward(const WorkSpec& spec, const Shape& shape,
                    const FeedForward& feed_forward, LayerWork* work);

// Adds router, token exchange, experts and shared experts, from the norm's
// output to the weighted sum. Tokens are spread evenly over the experts. The
// order of kernels and exchanges is that of Megatron Core's all-to-all token
// dispatcher.
void AddExperts(const Transformer& transformer, const WorkSpec& spec,
                const Shape& shape, LayerWork* work);

}  // namespace weir::models

#endif  // WEIR_MODELS_SUBLAYERS_H_
