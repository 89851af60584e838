// SPDX-License-Identifier: Apache-2.0
// The attention core: the weighted sum of the values, from queries, keys and
// values.
#ifndef WEIR_MODELS_ATTENTION_H_
#define WEIR_MODELS_ATTENTION_H_

#include <vector>

#include "models/shape.h"

namespace weir::models {

inline constexpr double kAttentionStatisticBytes = 4;  // of a row, fp32

struct AttentionCore {
  std::vector<Kernel> forward;
  std::vector<Kernel> backward;
  double stash_bytes = 0;            // besides queries, keys, values and output
  double forward_scratch_bytes = 0;  // buffers of context parallelism
  double backward_scratch_bytes = 0;  // score gradients, row sums, buffers
};

// Keys per query of a sequence.
struct KeyCount {
  double stored = 0;  // that exist: the length, and pooled entries if any
  double reach = 0;   // that attention without a causal mask would compute
  double seen = 0;    // average that a query sees
};

// Returns the keys of queries in a sequence of `s` tokens. A sliding window or
// a sparse index of k keys: min(i, k) of query i. Chunks of c tokens: those of
// the query's chunk. Pooled entries: one for every `ratio` earlier tokens.
KeyCount KeysOf(const Transformer& transformer, double s);
// Returns the fused attention of the sequences of `shape`, each with itself.
AttentionCore FusedAttention(const Transformer& transformer,
                             const WorkSpec& spec, const Shape& shape);

// Returns the kernels of the attention core. Fused: one kernel per direction,
// no score matrix in memory, masked parts skipped. Unfused: GEMMs around a
// softmax over the whole score matrix, causal or not, like Megatron-LM's
// CoreAttention: baddbmm, scaled masked softmax, dropout, bmm.
AttentionCore AttentionCoreOf(const Transformer& transformer,
                              const WorkSpec& spec, const Shape& shape);

}  // namespace weir::models

#endif  // WEIR_MODELS_ATTENTION_H_
