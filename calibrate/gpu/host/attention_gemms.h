// SPDX-License-Identifier: Apache-2.0
// Unfused attention as batched GEMMs around a softmax.
#ifndef WEIR_CALIBRATE_GPU_HOST_ATTENTION_GEMMS_H_
#define WEIR_CALIBRATE_GPU_HOST_ATTENTION_GEMMS_H_

#include <vector>

#include "calibrate/gpu/host/gemm_shape.h"

namespace weir::calibrate {

// A tensor of the operation: inputs[index] or outputs[index], starting at
// element `offset`.
struct AttentionOperand {
  bool is_output = false;
  int index = 0;
  int64_t offset = 0;
};

struct AttentionGemm {
  AttentionOperand a, b, d;
  GemmShape shape;
};

// GEMMs before and after the softmax (or its gradient). There is one launch per
// sequence and per member of a group of heads that share keys, batched over the
// groups. Gradients of shared keys and values are accumulated over the members.
struct AttentionGemms {
  std::vector<AttentionGemm> before, after;
};

// Returns the GEMMs of an operation. Requires: op is an unfused
// kAttentionForward or kAttentionBackward.
AttentionGemms GemmsOfAttention(const StageOp& op);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_HOST_ATTENTION_GEMMS_H_
