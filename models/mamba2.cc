// SPDX-License-Identifier: Apache-2.0
// Mamba-2 (Dao and Gu 2024, sections 6 and 7): one projection makes gate,
// input, B, C and time steps; convolution; recurrence; gated norm; projection.
#include <algorithm>

#include "models/collectives.h"
#include "models/linear_recurrence.h"
#include "models/mixers.h"

namespace weir::models {
namespace {

constexpr double kMambaChunk = 256;

struct MambaSizes {
  double inner, state, groups, heads;
  // Input, B and C.
  double Convolved() const { return inner + 2 * groups * state; }
  // Also gate and time steps.
  double Projected() const { return inner + Convolved() + heads; }
};

MambaSizes MambaSizesOf(const Mamba2& mamba, double t) {
  return {.inner = double(mamba.num_heads()) * mamba.head_size() / t,
          .state = double(mamba.state_size()),
          .groups = std::max(mamba.num_groups() / t, 1.0),
          .heads = mamba.num_heads() / t};
}

}  // namespace

ParameterCount Mamba2Parameters(const Transformer& transformer) {
  const Mamba2& mamba = transformer.mamba2();
  const double hidden = transformer.hidden_size();
  const MambaSizes sizes = MambaSizesOf(mamba, 1);
  const double filter = mamba.convolution_size() + mamba.convolution_bias();
  ParameterCount count;
  // Decay, time step bias and skip of each head; gain of the gated norm.
  count.split = hidden * sizes.Projected() + filter * sizes.Convolved() +
                3 * sizes.heads + sizes.inner + sizes.inner * hidden;
  return count;
}

AttentionCore AddMamba2(const Transformer& transformer, const WorkSpec& spec,
                        const Shape& shape, LayerWork* work) {
  const Mamba2& mamba = transformer.mamba2();
  const MambaSizes sizes = MambaSizesOf(mamba, shape.tensor_parallel);
  const double e = shape.element_bytes;
  const double inner = e * shape.tokens * sizes.inner;
  AddColumnInput(spec, WholeBytes(shape), work);
  Linear in{.rows = shape.tokens,
            .in = shape.hidden,
            .out = sizes.Projected(),
            .local_input_rows = shape.local_tokens,
            .from_norm = true};
  SetColumnPieces(spec, &in);
  AddLinear(spec, in, work);
  AddConvolution(shape, sizes.Convolved(), work);
  AddDecayRecurrence(
      shape,
      {.heads = sizes.heads,
       .groups = sizes.groups,
       .key_size = sizes.state,
       .value_size = double(mamba.head_size()),
       .chunk = mamba.chunk_size() > 0 ? mamba.chunk_size() : kMambaChunk},
      work);
  // Norm of the result times the gate: reads both, writes one.
  AddPasses(KernelPart::kNorm, 3 * inner, 1, 6 * inner, 3, work);
  Linear out{.rows = shape.tokens,
             .in = sizes.inner,
             .out = shape.hidden,
             .local_output_rows = shape.local_tokens};
  SetRowPieces(spec, &out);
  AddLinear(spec, out, work);
  AddRowOutput(spec, WholeBytes(shape), work);
  // Inputs of both linear layers; output of the convolution, gate and time
  // steps; result of the recurrence. States are computed again.
  const double projected = e * shape.tokens * sizes.Projected();
  work->stash_bytes += LocalBytes(shape) + projected + 2 * inner;
  work->weight_gradient_stash_bytes +=
      2 * LocalBytes(shape) + projected + inner;
  AttentionCore core;
  core.backward_scratch_bytes = projected + inner;
  return core;
}

}  // namespace weir::models
