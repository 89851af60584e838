// SPDX-License-Identifier: Apache-2.0
// The parts of a block. Each adds its kernels, its collectives, what it keeps
// for the backward and what its backward-weight waits for.
#ifndef WEIR_MODELS_SUBLAYERS_H_
#define WEIR_MODELS_SUBLAYERS_H_

#include "models/layer_work.h"
#include "models/shape.h"

namespace weir {

// Two linear layers around an activation, `width` wide on each GPU. `rows`
// vectors of the hidden size go through each of `batch` equal ones.
struct FeedForward {
  double batch = 1;
  double rows = 0;
  double width = 0;
  bool bias = false;
  double needed = 1;  // FLOP needed over FLOP performed
};
void AddFeedForward(const WorkSpec& spec, const Shape& shape,
                    const FeedForward& feed_forward, LayerWork* work);

// Router, exchange of tokens, experts and shared experts, from the norm's
// output to the sum. Tokens spread evenly over the experts. The order of
// kernels and exchanges is Megatron Core's all-to-all token dispatcher.
void AddExperts(const Transformer& transformer, const WorkSpec& spec,
                const Shape& shape, LayerWork* work);

}  // namespace weir

#endif  // WEIR_MODELS_SUBLAYERS_H_
