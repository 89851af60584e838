// SPDX-License-Identifier: Apache-2.0
#include "models/attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "models/context_parallel.h"
#include "models/kernels.h"

namespace weir::models {

namespace {

// Returns the average number of keys that a query sees, if query i of s sees
// min(i / spacing, reach) keys.
double CausalKeys(double s, double reach, double spacing) {
  return reach * (1 - reach * spacing / (2 * s));
}

}  // namespace

AttentionCore FusedAttention(const Transformer& transformer,
                             const WorkSpec& spec, const Shape& shape) {
  const PackedDocuments& documents = spec.documents;
  double s = shape.sequence_length;
  double sequences = shape.sequences;
  if (documents.length > 0 && documents.length < s) {
    sequences *= s / documents.length;  // one kernel over all documents
    s = documents.length;
  }
  const auto [stored, reach, seen] = KeysOf(transformer, s);
  const double e = shape.element_bytes;
  const double rows = sequences * shape.heads;
  // Bytes of queries with outputs, and of keys with values.
  const double wide = e * shape.tokens * (shape.query + shape.output()) / 2;
  const double narrow =
      stored / s * e * shape.tokens * (shape.key_value + shape.value()) / 2;
  const double statistics = kAttentionStatisticBytes * rows * s;

  Kernel forward;
  forward.kind = Kernel::Kind::kAttention;
  forward.part = KernelPart::kAttentionCore;
  forward.batch = documents.imbalance * rows;
  forward.m = s;
  forward.n = reach;
  forward.k = shape.head_size;
  forward.num_gemms = 2;
  // Dao et al. 2022: two GEMMs in the forward, five in the backward, one of
  // which recomputes the scores.
  const double keys = 2 * rows * s * shape.head_size;
  const double values = shape.value_part * keys;
  forward.flops = (keys + values) * reach;
  forward.performed_flops = documents.imbalance * (keys + values) * seen;
  forward.bytes = 2 * wide + 2 * narrow + statistics;
  Kernel backward = forward;
  backward.num_gemms = 5;
  backward.flops = 2 * (keys + values) * reach;
  backward.performed_flops =
      documents.imbalance * (3 * keys + 2 * values) * seen;
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

AttentionCore Apart(const Transformer& transformer, const WorkSpec& spec,
                    const Shape& shape) {
  const bool masked = transformer.causal();
  const double s = shape.sequence_length;
  const double n = KeysOf(transformer, s).stored;
  const double d = shape.head_size;
  const double v = shape.value_part * d;
  const double e = shape.element_bytes;
  const double mask = spec.residual_dropout_only ? 0 : shape.mask_bytes;
  const double rows = shape.sequences * shape.heads;
  const double scores = rows * s * n;
  const auto gemm = [&](double m, double columns, double k) {
    Kernel kernel =
        GemmKernel(rows, m, columns, k, e, KernelPart::kAttentionGemm);
    kernel.row_alignment = RowAlignment(columns, k);
    return kernel;
  };
  const SoftmaxPasses softmax = SoftmaxOf(spec, masked);
  AttentionCore core;
  core.forward = {gemm(s, n, d),
                  MemoryKernel(softmax.forward * scores, KernelPart::kSoftmax,
                               softmax.launches)};
  // Gradients of probabilities, values, queries and keys.
  core.backward = {gemm(s, n, v), gemm(n, v, s), gemm(s, d, n), gemm(n, d, s),
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
  core.forward.push_back(gemm(s, v, n));
  return core;
}

}  // namespace

KeyCount KeysOf(const Transformer& transformer, double s) {
  const bool causal = transformer.causal();
  const double window = transformer.sliding_window();
  const double chunk = transformer.attention_chunk();
  if (chunk > 0 && chunk < s) {
    const double rest = s - chunk * std::floor(s / chunk);
    const double reach = ((s - rest) * chunk + rest * rest) / s;
    return {s, reach, causal ? reach / 2 : reach};
  }
  const bool sparse = transformer.has_sparse_index();
  const double chosen = transformer.sparse_index().num_keys();
  if (transformer.has_compressed_attention()) {
    const double near = std::min(s, window);
    const double ratio = transformer.compressed_attention().ratio();
    if (ratio == 0) return {s, near, CausalKeys(s, near, 1)};
    const double entries = s / ratio;
    const double far = sparse ? std::min(entries, chosen) : entries;
    return {s + entries, near + far,
            CausalKeys(s, near, 1) + CausalKeys(s, far, ratio)};
  }
  double reach = window > 0 ? std::min(s, window) : s;
  if (sparse) reach = std::min(reach, chosen);
  return {s, reach, causal ? CausalKeys(s, reach, 1) : reach};
}

AttentionCore AttentionCoreOf(const Transformer& transformer,
                              const WorkSpec& spec, const Shape& shape) {
  AttentionCore core =
      spec.context.size() > 1 ? ContextAttention(transformer, spec, shape)
      : spec.flash_attention  ? FusedAttention(transformer, spec, shape)
                              : Apart(transformer, spec, shape);
  const OperandFormat format = spec.quantization.attention;
  if (format == OPERAND_16_BIT || !spec.flash_attention) return core;
  for (std::vector<Kernel>* kernels : {&core.forward, &core.backward}) {
    for (Kernel& kernel : *kernels) {
      if (kernel.kind == Kernel::Kind::kAttention) kernel.format = format;
    }
  }
  // Casts of queries, keys and values, and of the output's gradient.
  const double bytes = shape.element_bytes + OperandBytes(format);
  core.forward.insert(
      core.forward.begin(),
      MemoryKernel(bytes * shape.tokens *
                       (shape.query + shape.key_value + shape.value()),
                   KernelPart::kCast, 3));
  core.backward.insert(
      core.backward.begin(),
      MemoryKernel(bytes * shape.tokens * shape.output(), KernelPart::kCast));
  return core;
}

}  // namespace weir::models
