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
};

// Fused: one kernel each way, no score matrix in memory, masked parts skipped.
// Apart: products around a softmax over the whole score matrix.
AttentionCore AttentionCoreOf(const Transformer& transformer,
                              const Shape& shape, bool fused);

}  // namespace weir

#endif  // WEIR_MODELS_ATTENTION_H_
