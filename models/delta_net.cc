// SPDX-License-Identifier: Apache-2.0
// The gated delta rule in chunks (Yang et al. 2024, section 3; Yang et al.
// 2025, section 3.3), and Kimi delta attention (Kimi Linear, section 3).
#include <algorithm>

#include "models/collectives.h"
#include "models/linear_recurrence.h"
#include "models/mixers.h"

namespace weir::models {
namespace {

constexpr double kDecayBytes = 4;  // fp32

struct DeltaSizes {
  double key_heads, value_heads, key_size, value_size;
  double keys() const { return key_heads * key_size; }
  double values() const { return value_heads * value_size; }
  double Convolved() const { return 2 * keys() + values(); }
};

DeltaSizes DeltaSizesOf(const DeltaNet& net, double t) {
  const double value_heads =
      net.num_value_heads() > 0 ? net.num_value_heads() : net.num_key_heads();
  const double value_size =
      net.value_head_size() > 0 ? net.value_head_size() : net.key_head_size();
  return {.key_heads = std::max(net.num_key_heads() / t, 1.0),
          .value_heads = value_heads / t,
          .key_size = double(net.key_head_size()),
          .value_size = value_size};
}

double DeltaGateParameters(const DeltaNet& net, const DeltaSizes& sizes,
                           double hidden) {
  return net.gate_rank() > 0 ? net.gate_rank() * (hidden + sizes.values())
                             : hidden * sizes.values();
}

}  // namespace

ParameterCount DeltaNetParameters(const Transformer& transformer) {
  const DeltaNet& net = transformer.delta_net();
  const double hidden = transformer.hidden_size();
  const DeltaSizes sizes = DeltaSizesOf(net, 1);
  const double decays = net.channel_decay() ? sizes.keys() : sizes.value_heads;
  ParameterCount count;
  // Queries, keys, values; gate; strength of the update; output.
  count.split =
      hidden * sizes.Convolved() + DeltaGateParameters(net, sizes, hidden) +
      hidden * sizes.value_heads + sizes.values() * hidden +
      net.convolution_size() * sizes.Convolved() + decays + sizes.value_heads;
  if (net.channel_decay()) {
    count.replicated += hidden * sizes.key_size;
    count.split += sizes.key_size * sizes.keys();
  } else {
    count.split += hidden * sizes.value_heads;
  }
  count.replicated += sizes.value_size;  // gain of the norm of each head
  return count;
}

AttentionCore AddDeltaNet(const Transformer& transformer, const WorkSpec& spec,
                          const Shape& shape, LayerWork* work) {
  const DeltaNet& net = transformer.delta_net();
  const DeltaSizes sizes = DeltaSizesOf(net, shape.tensor_parallel);
  const double e = shape.element_bytes;
  const double tokens = shape.tokens;
  const double values = e * tokens * sizes.values();
  const double rank = net.gate_rank();
  AddColumnInput(spec, WholeBytes(shape), work);
  // One GEMM for all projections from the input; every GPU makes the narrow
  // vectors in between.
  const double split = sizes.Convolved() + sizes.value_heads +
                       (rank > 0 ? 0 : sizes.values()) +
                       (net.channel_decay() ? 0 : sizes.value_heads);
  const double repeated = rank + (net.channel_decay() ? sizes.key_size : 0);
  const double width = split + repeated;
  Linear in{.rows = tokens,
            .in = shape.hidden,
            .out = width,
            .needed = (split + repeated / shape.tensor_parallel) / width,
            .local_input_rows = shape.local_tokens,
            .from_norm = true};
  SetColumnPieces(spec, &in);
  AddLinear(spec, in, work);
  double saved = e * tokens * width;
  if (rank > 0) {
    AddLinear(spec,
              {.rows = tokens,
               .in = rank,
               .out = sizes.values(),
               .input = Linear::Input::kShared},
              work);
    saved += values;
  }
  double decay = kDecayBytes * tokens * sizes.value_heads;
  if (net.channel_decay()) {
    AddLinear(spec,
              {.rows = tokens,
               .in = sizes.key_size,
               .out = sizes.keys(),
               .input = Linear::Input::kShared},
              work);
    decay = kDecayBytes * tokens * sizes.keys();
  }
  AddPasses(KernelPart::kElementwise, 2 * decay, 1, 3 * decay, 1, work);
  AddConvolution(shape, sizes.Convolved(), work);
  // Queries and keys of unit length, repeated for every value head.
  const double query_keys = 2 * e * tokens * sizes.value_heads * sizes.key_size;
  AddPasses(KernelPart::kElementwise, 2 * query_keys, 1, 3 * query_keys, 1,
            work);
  AddDeltaRecurrence(shape,
                     {.heads = sizes.value_heads,
                      .key_size = sizes.key_size,
                      .value_size = sizes.value_size},
                     work);
  // Norm of each head's result, times the gate.
  AddPasses(KernelPart::kNorm, 3 * values, 1, 6 * values, 3, work);
  Linear out{.rows = tokens,
             .in = sizes.values(),
             .out = shape.hidden,
             .local_output_rows = shape.local_tokens};
  SetRowPieces(spec, &out);
  AddLinear(spec, out, work);
  AddRowOutput(spec, WholeBytes(shape), work);
  // Inputs of both linear layers, the projections, queries and keys of unit
  // length, decays, and the result of the recurrence. States are computed
  // again.
  work->stash_bytes +=
      LocalBytes(shape) + saved + query_keys + decay + 2 * values;
  work->weight_gradient_stash_bytes += 2 * LocalBytes(shape) + saved + values;
  AttentionCore core;
  core.backward_scratch_bytes = saved + query_keys;
  return core;
}

}  // namespace weir::models
