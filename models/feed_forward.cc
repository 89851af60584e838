// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "models/collectives.h"
#include "models/kernels.h"
#include "models/sublayers.h"

namespace weir::models {
namespace {

// Adds the activation's passes over memory, with `inner` output elements and
// `inputs` inputs for each. Fused: one kernel per direction. Unfused GELU: bias
// and GELU. Unfused SwiGLU: SiLU and product; in the backward two products and
// SiLU.
void AddActivation(const WorkSpec& spec, const FeedForward& feed_forward,
                   double inputs, double inner, LayerWork* work) {
  const double bytes = spec.bytes_per_element * inner;
  const double fused_forward = (inputs + 1) * bytes;
  const double fused_backward = (2 * inputs + 1) * bytes;
  if (spec.fused_bias_gelu) {
    AddPasses(KernelPart::kElementwise, fused_forward, 1, fused_backward, 1,
              work);
  } else if (inputs == 2) {
    AddPasses(KernelPart::kElementwise, 5 * bytes, 2, 9 * bytes, 3, work);
  } else {
    const double bias = feed_forward.bias ? 2 * bytes : 0;
    AddPasses(KernelPart::kElementwise, fused_forward + bias,
              feed_forward.bias ? 2 : 1, fused_backward, 1, work);
  }
}

// Adds the kernels that clamp both inputs of an activation and join them, for
// `elements` elements together. In the backward, each clamp reads its input and
// the gradient, and a copy joins the gradients of both.
void AddClamp(const WorkSpec& spec, double elements, LayerWork* work) {
  const double bytes = spec.bytes_per_element * elements;
  AddPasses(KernelPart::kElementwise, 4 * bytes, 3, 5 * bytes, 3, work);
  work->stash_bytes += bytes;  // the joined copy, which the activation saves
}

// Adds the biases of experts, for `elements` elements of their outputs. The
// forward multiplies the bias by the tokens' weights, adds the product, and
// joins the experts. The backward computes the gradients of both factors, a
// product and its sum each, and joins the gradients of the outputs.
void AddExpertBias(const WorkSpec& spec, double experts, double elements,
                   LayerWork* work) {
  const double bytes = spec.bytes_per_element * elements;
  const int num = static_cast<int>(std::lround(experts));
  AddPasses(KernelPart::kElementwise, 6 * bytes, 2 * num + 1, 8 * bytes,
            4 * num + 1, work);
}

}  // namespace

void AddFeedForward(const WorkSpec& spec, const Shape& shape,
                    const FeedForward& feed_forward, LayerWork* work) {
  const auto [batch, rows, width, bias, needed, experts, clamped, input,
              from_norm, local_rows, input_format] = feed_forward;
  const double e = shape.element_bytes;
  const double inputs = shape.feed_forward_inputs;
  const double inner = batch * rows * width;
  const double outer = batch * rows * shape.hidden;
  Linear linear{.part = KernelPart::kFeedForwardGemm,
                .batch = batch,
                .rows = rows,
                .in = shape.hidden,
                .out = inputs * width,
                .bias = bias,
                .needed = needed,
                .input = input,
                .local_input_rows = local_rows,
                .from_norm = from_norm,
                .input_format = input_format,
                .module = LINEAR_FC1,
                .experts = experts};
  const bool epilogue = spec.gelu_epilogue && inputs == 1;
  const bool clamps = clamped && inputs == 2 && !spec.fused_clamp;
  const bool adds_bias = bias && experts && !spec.fused_expert_bias;
  if (!experts) SetColumnPieces(spec, &linear);
  AddLinear(spec, linear, work);
  if (epilogue) {
    work->forward.back().bytes += e * inner;
  } else {
    if (clamps) AddClamp(spec, inputs * inner, work);
    AddActivation(spec, feed_forward, inputs, inner, work);
  }
  linear.input = Linear::Input::kOwn;
  linear.from_norm = false;
  linear.input_format = OPERAND_16_BIT;
  linear.module = LINEAR_FC2;
  linear.local_input_rows = 0;
  linear.local_output_rows = local_rows;
  linear.in = width;
  linear.out = shape.hidden;
  linear.bias = bias && !adds_bias;
  if (!experts) SetRowPieces(spec, &linear);
  AddLinear(spec, linear, work);
  if (epilogue) work->backward_input.back().bytes += e * inner;
  if (adds_bias) AddExpertBias(spec, batch, outer, work);
  // Inputs and output of the activation; unfused SwiGLU also saves SiLU's
  // output.
  const double kept = inputs + 1 + (inputs == 2 && !spec.fused_bias_gelu);
  work->stash_bytes += e * kept * inner;
  work->weight_gradient_stash_bytes += e * (1 + inputs) * inner + e * outer;
}

void AddDenseFeedForward(const Transformer& transformer, const WorkSpec& spec,
                         const Shape& shape, bool from_norm, LayerWork* work) {
  AddColumnInput(spec, WholeBytes(shape), work);
  AddFeedForward(spec, shape,
                 {.rows = shape.tokens,
                  .width = shape.feed_forward,
                  .bias = transformer.feed_forward_bias(),
                  .clamped = transformer.activation() == CLAMPED_SILU,
                  .from_norm = from_norm,
                  .local_rows = shape.local_tokens},
                 work);
  AddRowOutput(spec, WholeBytes(shape), work);
  work->stash_bytes += LocalBytes(shape);  // first linear layer's input
  // That input, and only this GPU's part of the output gradient instead of the
  // whole, which AddFeedForward has added.
  work->weight_gradient_stash_bytes +=
      2 * LocalBytes(shape) - WholeBytes(shape);
}

}  // namespace weir::models
