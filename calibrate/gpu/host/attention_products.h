// SPDX-License-Identifier: Apache-2.0
// Unfused attention as batched products around a softmax.
#ifndef WEIR_CALIBRATE_GPU_HOST_ATTENTION_PRODUCTS_H_
#define WEIR_CALIBRATE_GPU_HOST_ATTENTION_PRODUCTS_H_

#include <vector>

#include "calibrate/gpu/host/product_shape.h"

namespace weir {

// A tensor of the operation: inputs[index], or outputs[index], from `offset`
// elements on.
struct AttentionOperand {
  bool is_output = false;
  int index = 0;
  int64_t offset = 0;
};

struct AttentionProduct {
  AttentionOperand a, b, d;
  ProductShape shape;
};

// Products before the softmax (or its gradient) and behind it, one launch
// each: per sequence, and per member of a group of heads that share their keys;
// batched over the groups. Gradients of shared keys and values add up over the
// members.
struct AttentionProducts {
  std::vector<AttentionProduct> before, after;
};

// REQUIRES: op is an unfused kAttentionForward or kAttentionBackward.
AttentionProducts ProductsOfAttention(const StageOp& op);

}  // namespace weir

#endif  // WEIR_CALIBRATE_GPU_HOST_ATTENTION_PRODUCTS_H_
