// SPDX-License-Identifier: Apache-2.0
// Attention with one shared head of keys and values, a window of the latest
// tokens, and pooled entries of all earlier ones.
#include <algorithm>

#include "models/collectives.h"
#include "models/mixers.h"

namespace weir::models {
namespace {

// Returns the width of the projection that makes the values and the weights of
// the pooling; 0 without pooled entries.
double PoolingWidth(const Transformer& transformer) {
  const CompressedAttention& compressed = transformer.compressed_attention();
  if (compressed.ratio() == 0) return 0;
  return (compressed.overlap() ? 4.0 : 2.0) * transformer.head_size();
}

}  // namespace

ParameterCount CompressedAttentionParameters(const Transformer& transformer) {
  const CompressedAttention& compressed = transformer.compressed_attention();
  const double hidden = transformer.hidden_size();
  const double heads = transformer.num_heads();
  const double head = transformer.head_size();
  const double rank = compressed.query_rank();
  const double pooling = PoolingWidth(transformer);
  ParameterCount count;
  count.split =
      rank * heads * head + heads * head * compressed.output_rank() +
      double(compressed.output_groups()) * compressed.output_rank() * hidden;
  // Projections of queries, keys and their norms.
  count.replicated = rank * (hidden + 1) + head * (hidden + 1);
  if (pooling > 0) {
    count.replicated +=
        hidden * pooling + compressed.ratio() * pooling / 2 + head;
  }
  if (transformer.attention_sinks()) count.split += heads;
  if (transformer.has_sparse_index()) {
    count += SparseIndexParameters(transformer, rank);
  }
  return count;
}

AttentionCore AddCompressedAttention(const Transformer& transformer,
                                     const WorkSpec& spec, const Shape& shape,
                                     LayerWork* work) {
  const CompressedAttention& compressed = transformer.compressed_attention();
  Shape shared = shape;
  shared.key_value = shape.head_size;  // one head, on every GPU
  shared.key_value_share = shape.head_size / shape.tensor_parallel;
  AttentionCore core = AttentionCoreOf(transformer, spec, shared);
  const double e = shape.element_bytes;
  const double rank = compressed.query_rank();
  const double head = shape.head_size;
  const double pooling = PoolingWidth(transformer);
  const double entries = pooling > 0 ? shape.tokens / compressed.ratio() : 0;

  // Queries through a latent vector with a norm.
  work->stash_bytes += LocalBytes(shape);
  work->weight_gradient_stash_bytes += LocalBytes(shape);
  AddRepeatedLinear(spec, shape, shape.hidden, rank, true, work,
                    Linear::Input::kOwn);
  const double latent = e * shape.local_tokens * rank;
  AddPasses(KernelPart::kNorm, 2 * latent, 1, 5 * latent, 3, work);
  AddColumnInput(spec, e * shape.tokens * rank, work);
  AddLinear(spec,
            {.rows = shape.tokens,
             .in = rank,
             .out = shape.query,
             .local_input_rows = shape.local_tokens,
             .from_norm = true},
            work);
  work->stash_bytes += 2 * latent;
  work->weight_gradient_stash_bytes +=
      2 * latent + e * shape.tokens * shape.query;

  // The keys, which are also the values, with a norm; every GPU needs all.
  AddColumnInput(spec, WholeBytes(shape), work);
  AddRepeatedLinear(spec, shape, shape.hidden, head, false, work);
  const double keys = e * shape.tokens * head;
  AddPasses(KernelPart::kNorm, 2 * keys, 1, 5 * keys, 3, work);
  work->stash_bytes += 2 * keys;
  work->weight_gradient_stash_bytes += keys;
  if (pooling > 0) {
    AddRepeatedLinear(spec, shape, shape.hidden, pooling, false, work);
    const double pooled = e * shape.tokens * pooling;
    AddPasses(KernelPart::kElementwise, pooled + e * entries * head, 1,
              2 * pooled + e * entries * head, 1, work);
    work->stash_bytes += pooled + e * entries * head;
    work->weight_gradient_stash_bytes += pooled;
  }
  const double rotated = e * shape.tokens * (shape.query + head);
  AddPasses(KernelPart::kElementwise, 2 * rotated, 1, 2 * rotated, 1, work);
  if (transformer.has_sparse_index()) {
    AddSparseIndex(transformer, spec, shape, rank, work);
  }
  AddCore(core, work);

  // Each group of heads is projected separately, then all together.
  const double groups = compressed.output_groups() / shape.tensor_parallel;
  const double group_width = groups * compressed.output_rank();
  AddLinear(spec,
            {.batch = groups,
             .rows = shape.tokens,
             .in = shape.query / groups,
             .out = double(compressed.output_rank()),
             .input = OutputInput(spec)},
            work);
  Linear last{.rows = shape.tokens,
              .in = group_width,
              .out = shape.hidden,
              .local_output_rows = shape.local_tokens};
  SetRowPieces(spec, &last);
  AddLinear(spec, last, work);
  AddRowOutput(spec, WholeBytes(shape), work);
  const double outputs = e * shape.tokens * (shape.query + group_width);
  work->stash_bytes += e * shape.tokens * shape.query + outputs;
  work->weight_gradient_stash_bytes +=
      outputs + e * shape.tokens * group_width + LocalBytes(shape);
  core.backward_scratch_bytes =
      std::max(core.backward_scratch_bytes, 2 * e * shape.tokens * shape.query);
  return core;
}

}  // namespace weir::models
