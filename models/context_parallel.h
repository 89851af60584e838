// SPDX-License-Identifier: Apache-2.0
// Attention of a context-parallel group, whose GPUs hold different tokens of
// the same sequences (docs/context-parallelism.md). The first and last tokens
// of a sequence are paired so that a causal mask leaves every GPU the same work
// (zigzag: of 2c equal chunks, rank r has chunks r and 2c - 1 - r).
#ifndef WEIR_MODELS_CONTEXT_PARALLEL_H_
#define WEIR_MODELS_CONTEXT_PARALLEL_H_

#include <vector>

#include "models/attention.h"
#include "models/layer_work.h"
#include "models/shape.h"

namespace weir::models {

// Returns the value of --cp-comm-type: "p2p", "all_gather", "a2a", "a2a+p2p".
const char* ContextMethodName(ContextMethod method);

// Returns the group of `size` GPUs of a method. `hierarchy` has the two sizes
// of CONTEXT_A2A_P2P; other methods ignore it.
ContextSpec ContextSpecOf(ContextMethod method, int size,
                          const std::vector<int>& hierarchy);

// Returns the kernels of the attention core on one GPU: the fused attention of
// its queries, for a ring in one kernel per step, and what copies and combines
// tensors around it. Requires: spec.context.size() > 1.
AttentionCore ContextAttention(const Transformer& transformer,
                               const WorkSpec& spec, const Shape& shape);

// Adds the exchanges of queries, keys, values and outputs, and of their
// gradients. A group of one GPU has none.
void AddContextExchange(const WorkSpec& spec, const Shape& shape,
                        LayerWork* work);

}  // namespace weir::models

#endif  // WEIR_MODELS_CONTEXT_PARALLEL_H_
