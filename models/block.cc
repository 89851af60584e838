// SPDX-License-Identifier: Apache-2.0
#include "models/attention.h"
#include "models/collectives.h"
#include "models/kernels.h"
#include "models/shape.h"
#include "models/transformer_layers.h"

namespace weir {
namespace {

void AddNorm(const Shape& shape, LayerWork* work) {
  const double tensor = shape.element_bytes * shape.local_tokens * shape.hidden;
  work->forward.push_back(MemoryKernel(2 * tensor, KernelPart::kNorm));
  // Reads the gradient, the input and the residual's gradient; writes one.
  work->backward_input.push_back(MemoryKernel(4 * tensor, KernelPart::kNorm));
}

// Adds a sublayer's output to the residual stream, with dropout if any.
void AddResidual(const Shape& shape, LayerWork* work) {
  const double e = shape.element_bytes;
  const double mask = shape.mask_bytes;
  const double elements = shape.local_tokens * shape.hidden;
  work->forward.push_back(
      MemoryKernel((3 * e + mask) * elements, KernelPart::kElementwise));
  if (mask > 0) {
    work->backward_input.push_back(
        MemoryKernel((2 * e + mask) * elements, KernelPart::kElementwise));
  }
}

// Queries and keys pass through one element-wise kernel each way.
void AddQueryKeyPass(const Shape& shape, LayerWork* work) {
  const double bytes =
      2 * shape.element_bytes * shape.tokens * (shape.query + shape.key_value);
  work->forward.push_back(MemoryKernel(bytes, KernelPart::kElementwise));
  work->backward_input.push_back(MemoryKernel(bytes, KernelPart::kElementwise));
}

void AddAttention(const Transformer& transformer, const WorkSpec& spec,
                  const Shape& shape, LayerWork* work) {
  const double width = shape.query + 2 * shape.key_value;
  AddLinear({.rows = shape.tokens,
             .in = shape.hidden,
             .out = width,
             .bias = transformer.attention_bias(),
             .element_bytes = shape.element_bytes,
             .needed = (shape.query + 2 * shape.key_value_share) / width},
            work);
  if (transformer.query_key_norm()) AddQueryKeyPass(shape, work);
  if (transformer.num_positions() == 0) AddQueryKeyPass(shape, work);  // rotary
  const AttentionCore core =
      AttentionCoreOf(transformer, shape, spec.flash_attention);
  work->forward.insert(work->forward.end(), core.forward.begin(),
                       core.forward.end());
  work->backward_input.insert(work->backward_input.end(), core.backward.begin(),
                              core.backward.end());
  AddLinear({.rows = shape.tokens,
             .in = shape.query,
             .out = shape.hidden,
             .bias = transformer.attention_output_bias(),
             .element_bytes = shape.element_bytes},
            work);
}

void AddFeedForward(const Transformer& transformer, const Shape& shape,
                    LayerWork* work) {
  const double e = shape.element_bytes;
  const double inner = shape.tokens * shape.feed_forward;
  const double inputs = shape.feed_forward_inputs;
  const bool bias = transformer.feed_forward_bias();
  AddLinear({.part = KernelPart::kFeedForwardProduct,
             .rows = shape.tokens,
             .in = shape.hidden,
             .out = inputs * shape.feed_forward,
             .bias = bias,
             .element_bytes = e},
            work);
  work->forward.push_back(
      MemoryKernel((inputs + 1) * e * inner, KernelPart::kElementwise));
  work->backward_input.push_back(
      MemoryKernel((2 * inputs + 1) * e * inner, KernelPart::kElementwise));
  AddLinear({.part = KernelPart::kFeedForwardProduct,
             .rows = shape.tokens,
             .in = shape.feed_forward,
             .out = shape.hidden,
             .bias = bias,
             .element_bytes = e},
            work);
}

// Everything a block keeps for its backward except the attention core's own:
// Korthikanti et al. 2022, section 4.1, part by part.
double StashWithoutCore(const Transformer& transformer, const Shape& shape) {
  const double e = shape.element_bytes;
  const double local = shape.local_tokens * shape.hidden;
  const double query = shape.tokens * shape.query;
  const double key_value = shape.tokens * shape.key_value;
  const double inner = shape.tokens * shape.feed_forward;
  const double norms = 2 * e * local;           // their inputs
  const double linear_inputs = 2 * e * local +  // QKV, feed-forward
                               e * query;       // attention output
  const double attention_inputs = e * (query + 2 * key_value);
  const double query_key_norm =
      transformer.query_key_norm() ? e * (query + key_value) : 0;
  const double activation =  // its inputs, its output
      e * (shape.feed_forward_inputs + 1) * inner;
  const double masks = 2 * shape.mask_bytes * local;
  return norms + linear_inputs + attention_inputs + query_key_norm +
         activation + masks;
}

// Inputs of the linear layers and gradients of their outputs: what the
// backward-weight needs (Qi et al. 2023, M_W).
double WeightGradientStash(const Shape& shape) {
  const double local = shape.local_tokens * shape.hidden;
  const double inner = shape.tokens * shape.feed_forward;
  const double query = shape.tokens * shape.query;
  const double inputs = 2 * local + query + inner;
  const double gradients = query + 2 * shape.tokens * shape.key_value + local +
                           shape.feed_forward_inputs * inner + local;
  return shape.element_bytes * (inputs + gradients);
}

void SetStash(const Transformer& transformer, const WorkSpec& spec,
              const Shape& shape, LayerWork* work) {
  const AttentionCore core =
      AttentionCoreOf(transformer, shape, spec.flash_attention);
  const double others = StashWithoutCore(transformer, shape);
  const double input = shape.element_bytes * shape.local_tokens * shape.hidden;
  work->stash_bytes = others + core.stash_bytes;
  if (spec.recompute == Recompute::kFull) {
    work->recompute = work->forward;
    work->recompute_scratch_bytes = work->stash_bytes - input;
    work->stash_bytes = input;
  } else if (spec.recompute == Recompute::kSelective && !spec.flash_attention) {
    // Fused attention keeps no scores: there is nothing to select.
    work->recompute = core.forward;
    work->recompute_scratch_bytes = core.stash_bytes;
    work->stash_bytes = others;
  }
  work->weight_gradient_stash_bytes = WeightGradientStash(shape);
}

}  // namespace

LayerWork BlockWork(const Transformer& transformer, const WorkSpec& spec) {
  const Shape shape = ShapeOf(transformer, spec);
  LayerWork work;
  work.name = "block";
  work.role = LayerRole::kBlock;
  AddNorm(shape, &work);
  AddAttention(transformer, spec, shape, &work);
  AddResidual(shape, &work);
  AddNorm(shape, &work);
  AddFeedForward(transformer, shape, &work);
  AddResidual(shape, &work);
  SetStash(transformer, spec, shape, &work);
  work.output_bytes = shape.element_bytes * shape.local_tokens * shape.hidden;
  work.parameters =
      PerGpu(BlockParameters(transformer), transformer, spec.tensor_parallel);
  const double whole = shape.element_bytes * shape.tokens * shape.hidden;
  for (int sublayer = 0; sublayer < 2; ++sublayer) {
    AddColumnInput(spec, whole, &work);
    AddRowOutput(spec, whole, &work);
  }
  if (spec.recompute == Recompute::kFull) RepeatForwardCollectives(&work);
  return work;
}

}  // namespace weir
