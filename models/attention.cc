// SPDX-License-Identifier: Apache-2.0
#include "models/attention.h"

#include <algorithm>

#include "models/kernels.h"

namespace weir {
namespace {

constexpr double kStatisticBytes = 4;  // log of a softmax's sum, fp32

AttentionCore Fused(const Transformer& transformer, const Shape& shape) {
  const double s = shape.sequence_length;
  const double window = transformer.sliding_window();
  const double reach = window > 0 ? std::min(s, window) : s;
  // Query i sees min(i, reach) keys when causal.
  const double seen =
      transformer.causal() ? reach * (1 - reach / (2 * s)) : reach;
  const double e = shape.element_bytes;
  const double rows = shape.sequences * shape.heads;
  const double wide = e * shape.tokens * shape.query;
  const double narrow = e * shape.tokens * shape.key_value;
  const double statistics = kStatisticBytes * rows * s;

  Kernel forward;
  forward.kind = Kernel::Kind::kAttention;
  forward.part = KernelPart::kAttentionCore;
  forward.batch = rows;
  forward.m = s;
  forward.n = reach;
  forward.k = shape.head_size;
  // Dao et al. 2022: two products forward, five backward, of which one makes
  // the scores again.
  const double product = 2 * rows * s * shape.head_size;
  forward.flops = 2 * product * reach;
  forward.performed_flops = 2 * product * seen;
  forward.bytes = 2 * wide + 2 * narrow + statistics;
  Kernel backward = forward;
  backward.flops = 4 * product * reach;
  backward.performed_flops = 5 * product * seen;
  backward.bytes = 4 * wide + 4 * narrow + statistics;
  return {{forward}, {backward}, statistics};
}

AttentionCore Apart(const Shape& shape) {
  const double s = shape.sequence_length;
  const double d = shape.head_size;
  const double e = shape.element_bytes;
  const double mask = shape.mask_bytes;
  const double rows = shape.sequences * shape.heads;
  const double scores = rows * s * s;
  const Kernel to_scores =
      ProductKernel(rows, s, s, d, e, KernelPart::kAttentionProduct);
  const Kernel from_scores =
      ProductKernel(rows, s, d, s, e, KernelPart::kAttentionProduct);
  AttentionCore core;
  core.forward = {to_scores,
                  MemoryKernel(2 * e * scores, KernelPart::kSoftmax)};
  core.backward = {to_scores, from_scores, from_scores, from_scores,
                   MemoryKernel(3 * e * scores, KernelPart::kSoftmax)};
  core.stash_bytes = e * scores;  // the softmax's output
  if (mask > 0) {
    const Kernel dropout =
        MemoryKernel((2 * e + mask) * scores, KernelPart::kElementwise);
    core.forward.push_back(dropout);
    core.backward.push_back(dropout);
    core.stash_bytes += (e + mask) * scores;  // the dropout's output, its mask
  }
  core.forward.push_back(from_scores);
  return core;
}

}  // namespace

AttentionCore AttentionCoreOf(const Transformer& transformer,
                              const Shape& shape, bool fused) {
  return fused ? Fused(transformer, shape) : Apart(shape);
}

}  // namespace weir
