// SPDX-License-Identifier: Apache-2.0
// The index of sparse attention (DeepSeek-V3.2, section 2.1): scores of every
// earlier token, computed with few narrow heads, choose the keys of a query.
// Every GPU of the tensor-parallel group repeats it.
#include <algorithm>

#include "models/mixers.h"

namespace weir::models {
namespace {

constexpr double kScoreBytes = 4;   // fp32, summed over the heads of the index
constexpr double kChoiceBytes = 4;  // position of a chosen key

// Returns the width of the projection that makes the keys of the index: twice
// (values and weights of the pooling) one or two heads for pooled entries.
double KeyWidth(const Transformer& transformer) {
  const double head = transformer.sparse_index().head_size();
  if (!transformer.has_compressed_attention()) return head;
  return (transformer.compressed_attention().overlap() ? 4 : 2) * head;
}

}  // namespace

ParameterCount SparseIndexParameters(const Transformer& transformer,
                                     double query_input) {
  const SparseIndex& index = transformer.sparse_index();
  ParameterCount count;
  if (index.shared()) return count;
  const double hidden = transformer.hidden_size();
  const double heads = index.num_heads();
  const double head = index.head_size();
  const double keys = KeyWidth(transformer);
  // Queries, keys, the weight of each head; the norm of the keys.
  count.replicated =
      query_input * heads * head + hidden * keys + hidden * heads;
  if (transformer.has_compressed_attention()) {
    // Positions within the pooled window, and an RMS norm.
    count.replicated +=
        transformer.compressed_attention().ratio() * keys / 2 + head;
  } else {
    count.replicated += 2 * head;
  }
  return count;
}

void AddSparseIndex(const Transformer& transformer, const WorkSpec& spec,
                    const Shape& shape, double query_input, LayerWork* work) {
  const SparseIndex& index = transformer.sparse_index();
  if (index.shared()) return;
  const double e = shape.element_bytes;
  const double s = shape.sequence_length;
  const double t = shape.tensor_parallel;
  const double heads = index.num_heads();
  const double head = index.head_size();
  const double ratio =
      std::max<double>(transformer.compressed_attention().ratio(), 1);
  const double num_keys = s / ratio;
  const double chosen = std::min<double>(num_keys, index.num_keys());
  // Parts of all keys, and of the chosen ones, that a causal query sees.
  const double seen = transformer.causal() ? 0.5 : 1;
  const double chosen_seen =
      transformer.causal() ? 1 - chosen * ratio / (2 * s) : 1;

  const WorkSpec plain = WithoutQuantization(spec);
  AddRepeatedLinear(plain, shape, query_input, heads * head, false, work);
  AddRepeatedLinear(plain, shape, shape.hidden, KeyWidth(transformer), false,
                    work);
  AddRepeatedLinear(plain, shape, shape.hidden, heads, false, work);
  const double keys = e * shape.tokens / ratio * head;
  AddPasses(KernelPart::kNorm, 2 * keys, 1, 5 * keys, 3, work);

  Kernel scores;
  scores.kind = Kernel::Kind::kAttention;
  scores.part = KernelPart::kAttentionCore;
  scores.batch = shape.sequences * heads;
  scores.m = s;
  scores.n = num_keys;
  scores.k = head;
  scores.num_gemms = 1;
  const double gemm = 2 * scores.batch * s * head;
  scores.flops = gemm * num_keys / t;
  scores.performed_flops = gemm * num_keys * seen;
  const double sums = kScoreBytes * shape.tokens * num_keys * seen;
  const double queries = e * shape.tokens * heads * head;
  scores.bytes = queries + keys + sums;
  work->forward.push_back(scores);
  const double choices = kChoiceBytes * shape.tokens * chosen;
  work->forward.push_back(
      MemoryKernel(sums + choices, KernelPart::kSoftmax, 1));
  // The index loss covers only the selected keys. Its backward computes the
  // gradients of the index queries and keys: two GEMMs.
  Kernel backward = scores;
  backward.num_gemms = 2;
  backward.n = chosen;
  backward.flops = 2 * gemm * chosen / t;
  backward.performed_flops = 2 * gemm * chosen * chosen_seen;
  backward.bytes = 2 * (queries + keys) + kScoreBytes * shape.tokens * chosen;
  work->backward_input.push_back(backward);

  const double weights = e * shape.tokens * heads;
  work->stash_bytes += queries + 2 * keys + weights + choices;
  work->weight_gradient_stash_bytes += queries + keys + weights;
}

}  // namespace weir::models
