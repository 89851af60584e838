// SPDX-License-Identifier: Apache-2.0
// Multi-head latent attention as it is trained: keys and values of every head
// are computed from the latent vectors, as in Megatron Core's
// MLASelfAttention. (Inference multiplies the matrices instead.)
#include <algorithm>
#include <vector>

#include "models/collectives.h"
#include "models/context_parallel.h"
#include "models/mixers.h"

namespace weir::models {
namespace {

// Returns the shape of the core: every head has its own keys and values.
Shape CoreShape(const Transformer& transformer, const Shape& shape) {
  const LatentAttention& latent = transformer.latent_attention();
  Shape core = shape;
  core.head_size = double(latent.plain_head_size()) + latent.rotary_head_size();
  core.value_part = latent.value_head_size() / core.head_size;
  core.query = core.heads * core.head_size;
  core.key_value = core.query;
  core.key_value_share = core.query;
  return core;
}

// Adds the RMS norm of a latent vector of each token that the GPU holds. Its
// input and output are saved.
void AddLatentNorm(const Shape& shape, double width, LayerWork* work) {
  const double bytes = shape.element_bytes * shape.local_tokens * width;
  AddPasses(KernelPart::kNorm, 2 * bytes, 1, 5 * bytes, 3, work);
  work->stash_bytes += 2 * bytes;
}

// Adds a projection from a gathered latent vector to the heads.
void AddUpProjection(const WorkSpec& spec, const Shape& shape, double in,
                     double out, LayerWork* work) {
  Linear up{.rows = shape.tokens,
            .in = in,
            .out = out,
            .local_input_rows = shape.local_tokens,
            .from_norm = true,
            .module = LINEAR_QKV};
  SetColumnPieces(spec, &up);
  AddLinear(spec, up, work);
  work->weight_gradient_stash_bytes +=
      shape.element_bytes * (shape.local_tokens * in + shape.tokens * out);
}

// Returns the width of the keys without rotation and the values of all heads.
double ExpandedWidth(const LatentAttention& latent, const Shape& shape) {
  return shape.heads *
         (double(latent.plain_head_size()) + latent.value_head_size());
}

// Adds the projection to the queries, with the gather of its input.
void AddQueryProjection(const LatentAttention& latent, const WorkSpec& spec,
                        const Shape& shape, const Shape& heads,
                        LayerWork* work) {
  const double rank = latent.query_rank();
  if (rank > 0) {
    AddColumnInput(spec, shape.element_bytes * shape.tokens * rank, work);
    AddUpProjection(spec, shape, rank, heads.query, work);
  } else {
    AddColumnInput(spec, WholeBytes(shape), work);
    AddUpProjection(spec, shape, shape.hidden, heads.query, work);
  }
}

// Adds the projection to keys and values, with the gather of its input.
void AddKeyValueProjection(const LatentAttention& latent, const WorkSpec& spec,
                           const Shape& shape, LayerWork* work) {
  const double rank = latent.key_value_rank();
  AddColumnInput(
      spec,
      shape.element_bytes * shape.tokens * (rank + latent.rotary_head_size()),
      work);
  AddUpProjection(spec, shape, rank, ExpandedWidth(latent, shape), work);
}

// Adds the rotation of queries in place, and the assembly of the keys: the
// rotary part, which all heads share, is copied to each of them.
void AddRotation(const LatentAttention& latent, const Shape& shape,
                 const Shape& heads, LayerWork* work) {
  const double e = shape.element_bytes;
  const double rotated =
      e * shape.tokens * (shape.heads + 1) * latent.rotary_head_size();
  const double assembled =
      e * shape.tokens *
      (ExpandedWidth(latent, shape) + heads.query + heads.output());
  AddPasses(KernelPart::kElementwise, 2 * rotated, 2, 2 * rotated, 2, work);
  AddPasses(KernelPart::kElementwise, assembled, 2, assembled, 2, work);
}

}  // namespace

ParameterCount LatentAttentionParameters(const Transformer& transformer) {
  const LatentAttention& latent = transformer.latent_attention();
  const double hidden = transformer.hidden_size();
  const double heads = transformer.num_heads();
  const double query_rank = latent.query_rank();
  const double rank = latent.key_value_rank();
  const double plain = latent.plain_head_size();
  const double rotary = latent.rotary_head_size();
  const double value = latent.value_head_size();
  const bool gated = transformer.attention_gate() != ATTENTION_GATE_NONE;
  ParameterCount count;
  count.split =
      heads * ((query_rank > 0 ? query_rank : hidden) * (plain + rotary) +
               rank * (plain + value) + hidden * value);
  // Query norm and down-projection; those of keys and values.
  count.replicated =
      query_rank * (hidden + 1) + hidden * (rank + rotary) + rank;
  if (gated) count.split += hidden * heads * value;
  if (transformer.attention_bias()) {
    count.replicated += query_rank + rank + rotary;
  }
  if (transformer.attention_output_bias()) count.replicated += hidden;
  if (transformer.has_sparse_index()) {
    count += SparseIndexParameters(transformer,
                                   query_rank > 0 ? query_rank : hidden);
  }
  return count;
}

AttentionCore AddLatentAttention(const Transformer& transformer,
                                 const WorkSpec& spec, const Shape& shape,
                                 LayerWork* work) {
  const LatentAttention& latent = transformer.latent_attention();
  const Shape heads = CoreShape(transformer, shape);
  AttentionCore core = AttentionCoreOf(transformer, spec, heads);
  for (std::vector<Kernel>* kernels : {&core.forward, &core.backward}) {
    for (Kernel& kernel : *kernels) {
      if (kernel.kind == Kernel::Kind::kAttention)
        kernel.variant = Kernel::Variant::kLatent;
    }
  }
  const double e = shape.element_bytes;
  const double query_rank = latent.query_rank();
  const double rank = latent.key_value_rank();
  const double rotary = latent.rotary_head_size();
  const double output = heads.output();
  const bool gated = transformer.attention_gate() != ATTENTION_GATE_NONE;

  work->stash_bytes += LocalBytes(shape);  // input of the down-projections
  work->weight_gradient_stash_bytes += LocalBytes(shape);
  if (query_rank > 0) {
    AddRepeatedLinear(spec, shape, shape.hidden, query_rank, true, work,
                      Linear::Input::kOwn);
    AddLatentNorm(shape, query_rank, work);
    AddQueryProjection(latent, spec, shape, heads, work);
  } else {
    AddQueryProjection(latent, spec, shape, heads, work);
    work->weight_gradient_stash_bytes -= LocalBytes(shape);  // counted above
  }
  AddRepeatedLinear(spec, shape, shape.hidden, rank + rotary, true, work);
  AddLatentNorm(shape, rank, work);
  AddKeyValueProjection(latent, spec, shape, work);
  // Gradients of the outputs of the down-projections.
  work->weight_gradient_stash_bytes +=
      e * shape.local_tokens * (query_rank + rank + rotary);
  AddRotation(latent, shape, heads, work);
  if (transformer.has_sparse_index()) {
    AddSparseIndex(transformer, spec, shape,
                   query_rank > 0 ? query_rank : shape.hidden, work);
  }
  AddCore(core, work);
  if (gated) {
    AddColumnInput(spec, WholeBytes(shape), work);
    AddLinear(spec,
              {.rows = shape.tokens,
               .in = shape.hidden,
               .out = output,
               .input = Linear::Input::kShared,
               .local_input_rows = shape.local_tokens},
              work);
    AddGate(shape, shape.tokens * output, shape.tokens * output, work);
    work->stash_bytes += 2 * e * shape.tokens * output;  // gate, gated outputs
    work->weight_gradient_stash_bytes += e * shape.tokens * output;
  }
  Linear last{.rows = shape.tokens,
              .in = output,
              .out = shape.hidden,
              .bias = transformer.attention_output_bias(),
              .input = gated ? Linear::Input::kOwn : OutputInput(spec),
              .local_output_rows = shape.local_tokens,
              .module = LINEAR_PROJ};
  SetRowPieces(spec, &last);
  AddContextExchange(spec, heads, work);
  AddLinear(spec, last, work);
  AddRowOutput(spec, WholeBytes(shape), work);
  // Queries, keys and values, and their weighted sum.
  const double expanded = 2 * heads.query + output;
  work->stash_bytes += e * shape.tokens * (expanded + output);
  work->weight_gradient_stash_bytes +=
      LocalBytes(shape) + e * shape.tokens * output;
  core.backward_scratch_bytes =
      std::max(core.backward_scratch_bytes, e * shape.tokens * expanded);
  return core;
}

LayerWork LatentExpansion(const Transformer& transformer, const WorkSpec& spec,
                          const Shape& shape) {
  const LatentAttention& latent = transformer.latent_attention();
  const Shape heads = CoreShape(transformer, shape);
  LayerWork work;
  AddQueryProjection(latent, spec, shape, heads, &work);
  AddKeyValueProjection(latent, spec, shape, &work);
  AddRotation(latent, shape, heads, &work);
  work.stash_bytes =
      shape.element_bytes * shape.tokens * (2 * heads.query + heads.output());
  return work;
}

}  // namespace weir::models
