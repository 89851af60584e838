// SPDX-License-Identifier: Apache-2.0
// The attention core: from queries, keys and values to their weighted sum.
#ifndef WEIR_MODELS_ATTENTION_H_
#define WEIR_MODELS_ATTENTION_H_

#include <vector>

#include "models/shape.h"

namespace weir {

struct AttentionCore {
  std::vector<Kernel> forward;
  std::vector<Kernel> backward;
  double stash_bytes = 0;  // beyond queries, keys, values and the output
  double backward_scratch_bytes = 0;  // gradients of the scores, sums of rows
};

// Fused: one kernel each way, no score matrix in memory, masked parts skipped.
// Apart: products around a softmax over the whole score matrix, causal or not,
// as Megatron-LM's CoreAttention: baddbmm, scaled masked softmax, dropout, bmm.
AttentionCore AttentionCoreOf(const Transformer& transformer,
                              const WorkSpec& spec, const Shape& shape);

}  // namespace weir

#endif  // WEIR_MODELS_ATTENTION_H_
