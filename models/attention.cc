// SPDX-License-Identifier: Apache-2.0
#include "models/attention.h"

#include <algorithm>

#include "models/context_parallel.h"
#include "models/kernels.h"

namespace weir::models {

AttentionCore FusedAttention(const Transformer& transformer,
                             const WorkSpec& spec, const Shape& shape) {
  const double s = shape.sequence_length;
  const double window = transformer.sliding_window();
  const double reach = window > 0 ? std::min(s, window) : s;
  // Query i sees min(i, reach) keys if causal.
  const double seen =
      transformer.causal() ? reach * (1 - reach / (2 * s)) : reach;
  const double e = shape.element_bytes;
  const double rows = shape.sequences * shape.heads;
  const double wide = e * shape.tokens * shape.query;
  const double narrow = e * shape.tokens * shape.key_value;
  const double statistics = kAttentionStatisticBytes * rows * s;

  Kernel forward;
  forward.kind = Kernel::Kind::kAttention;
  forward.part = KernelPart::kAttentionCore;
  forward.batch = rows;
  forward.m = s;
  forward.n = reach;
  forward.k = shape.head_size;
  forward.num_gemms = 2;
  // Dao et al. 2022: two GEMMs in the forward, five in the backward, one of
  // which recomputes the scores.
  const double gemm = 2 * rows * s * shape.head_size;
  forward.flops = 2 * gemm * reach;
  forward.performed_flops = 2 * gemm * seen;
  forward.bytes = 2 * wide + 2 * narrow + statistics;
  Kernel backward = forward;
  backward.num_gemms = 5;
  backward.flops = 4 * gemm * reach;
  backward.performed_flops = 5 * gemm * seen;
  backward.bytes = 4 * wide + 4 * narrow + statistics;
  // Row sums of the output times its gradient.
  const double scratch = spec.early_release ? statistics : 0;
  return {{forward}, {backward}, statistics, 0, scratch};
}

namespace {

// Memory traffic of the softmax in bytes per score, its kernel launches per
// direction, and the bytes per score that it saves.
struct SoftmaxPasses {
  double forward, backward;
  int launches;
  double stash;
};

SoftmaxPasses SoftmaxOf(const WorkSpec& spec, bool masked) {
  const double e = spec.bytes_per_element;
  if (spec.fused_softmax) return {2 * e, 3 * e, 1, e};
  // Scaling and softmax in fp32. The mask is one byte per score.
  SoftmaxPasses passes = {8 + 8, 8 + 12, 2, 4};
  if (masked) {
    passes.forward += 9;
    passes.backward += 9;
    ++passes.launches;
  }
  if (e < 4) {  // conversion to fp32 and back
    passes.forward += 2 * (e + 4);
    passes.backward += 2 * (e + 4);
    passes.launches += 2;
  }
  return passes;
}

AttentionCore Apart(const WorkSpec& spec, const Shape& shape, bool masked) {
  const double s = shape.sequence_length;
  const double d = shape.head_size;
  const double e = shape.element_bytes;
  const double mask = spec.residual_dropout_only ? 0 : shape.mask_bytes;
  const double rows = shape.sequences * shape.heads;
  const double scores = rows * s * s;
  const auto gemm = [&](double n, double k) {
    Kernel kernel = GemmKernel(rows, s, n, k, e, KernelPart::kAttentionGemm);
    kernel.row_alignment = RowAlignment(n, k);
    return kernel;
  };
  const SoftmaxPasses softmax = SoftmaxOf(spec, masked);
  AttentionCore core;
  core.forward = {gemm(s, d),
                  MemoryKernel(softmax.forward * scores, KernelPart::kSoftmax,
                               softmax.launches)};
  core.backward = {gemm(s, d), gemm(d, s), gemm(d, s), gemm(d, s),
                   MemoryKernel(softmax.backward * scores, KernelPart::kSoftmax,
                                softmax.launches)};
  core.stash_bytes = softmax.stash * scores;
  if (mask > 0) {
    const Kernel dropout = MemoryKernel((2 * e + mask) * scores);
    core.forward.push_back(dropout);
    core.backward.push_back(dropout);
    core.stash_bytes += (e + mask) * scores;  // output and mask of the dropout
  } else if (!spec.fused_softmax && e < 4) {
    core.stash_bytes += e * scores;  // 16-bit probabilities, for the GEMM
  }
  core.backward_scratch_bytes = (spec.early_release ? 1 : 2) * e * scores;
  core.forward.push_back(gemm(d, s));
  return core;
}

}  // namespace

AttentionCore AttentionCoreOf(const Transformer& transformer,
                              const WorkSpec& spec, const Shape& shape) {
  if (spec.context.size() > 1) {
    return ContextAttention(transformer, spec, shape);
  }
  return spec.flash_attention ? FusedAttention(transformer, spec, shape)
                              : Apart(spec, shape, transformer.causal());
}

}  // namespace weir::models
