// SPDX-License-Identifier: Apache-2.0
// Lightning attention (MiniMax-01, section 2.2; Qin et al. 2024): queries, keys
// and values without softmax, a fixed decay per head, a norm over all heads and
// a gate from the input.
#include "models/collectives.h"
#include "models/linear_recurrence.h"
#include "models/mixers.h"

namespace weir::models {
namespace {

constexpr double kLightningChunk = 256;

}  // namespace

ParameterCount LightningAttentionParameters(const Transformer& transformer) {
  const double hidden = transformer.hidden_size();
  const double width =
      double(transformer.num_heads()) * transformer.head_size();
  // Queries, keys, values, gate, output; gain of the norm.
  return {.split = 5 * hidden * width + width};
}

AttentionCore AddLightningAttention(const Transformer& transformer,
                                    const WorkSpec& spec, const Shape& shape,
                                    LayerWork* work) {
  const uint32_t chunk = transformer.lightning_attention().chunk_size();
  const double e = shape.element_bytes;
  const double width = e * shape.tokens * shape.query;
  AddColumnInput(spec, WholeBytes(shape), work);
  Linear in{.rows = shape.tokens,
            .in = shape.hidden,
            .out = 4 * shape.query,
            .local_input_rows = shape.local_tokens,
            .from_norm = true};
  SetColumnPieces(spec, &in);
  AddLinear(spec, in, work);
  AddPasses(KernelPart::kElementwise, 6 * width, 1, 9 * width, 1, work);
  AddDecayRecurrence(shape,
                     {.heads = shape.heads,
                      .groups = shape.heads,
                      .key_size = shape.head_size,
                      .value_size = shape.head_size,
                      .chunk = chunk > 0 ? double(chunk) : kLightningChunk},
                     work);
  AddPasses(KernelPart::kNorm, 3 * width, 1, 6 * width, 3, work);
  Linear out{.rows = shape.tokens,
             .in = shape.query,
             .out = shape.hidden,
             .local_output_rows = shape.local_tokens};
  SetRowPieces(spec, &out);
  AddLinear(spec, out, work);
  AddRowOutput(spec, WholeBytes(shape), work);
  // Inputs of both linear layers; queries, keys, values before and after their
  // activation; gate; result of the recurrence.
  work->stash_bytes += LocalBytes(shape) + 9 * width;
  work->weight_gradient_stash_bytes += 2 * LocalBytes(shape) + 5 * width;
  AttentionCore core;
  core.backward_scratch_bytes = 4 * width;
  return core;
}

}  // namespace weir::models
