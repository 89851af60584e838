// SPDX-License-Identifier: Apache-2.0
#include "models/collectives.h"
#include "models/context_parallel.h"
#include "models/mixers.h"

namespace weir::models {
namespace {

// Returns the width of the gate of the outputs of `heads` heads, `output` wide.
double GateWidth(const Transformer& transformer, double heads, double output) {
  switch (transformer.attention_gate()) {
    case ATTENTION_GATE_PER_ELEMENT:
      return output;
    case ATTENTION_GATE_PER_HEAD:
      return heads;
    default:
      return 0;
  }
}

// Adds one element-wise kernel over queries and keys in each direction.
void AddQueryKeyPass(const Shape& shape, LayerWork* work) {
  const double bytes =
      2 * shape.element_bytes * shape.tokens * (shape.query + shape.key_value);
  AddPasses(KernelPart::kElementwise, bytes, 1, bytes, 1, work);
}

}  // namespace

ParameterCount AttentionParameters(const Transformer& transformer) {
  const double hidden = transformer.hidden_size();
  const double heads = transformer.num_heads();
  const double head = transformer.head_size();
  const double value_head = transformer.value_head_size() > 0
                                ? transformer.value_head_size()
                                : transformer.head_size();
  const double kv_heads = transformer.num_kv_heads();
  const double values = transformer.keys_are_values() ? 0 : value_head;
  const double gate = GateWidth(transformer, heads, heads * value_head);
  ParameterCount count;
  count.split = hidden * (heads * (head + value_head) + gate);
  count.key_value = hidden * kv_heads * (head + values);
  if (transformer.attention_bias()) {
    count.split += heads * head;
    count.key_value += kv_heads * (head + values);
  }
  if (transformer.attention_output_bias()) count.replicated += hidden;
  if (transformer.attention_sinks()) count.split += heads;
  if (transformer.query_key_norm()) {
    if (transformer.wide_query_key_norm()) {
      count.split += heads * head;
      count.key_value += kv_heads * head;
    } else {
      count.replicated += 2 * head;
    }
  }
  if (transformer.has_sparse_index()) {
    count += SparseIndexParameters(transformer, hidden);
  }
  return count;
}

AttentionCore AddAttention(const Transformer& transformer, const WorkSpec& spec,
                           const Shape& shape, LayerWork* work) {
  AttentionCore core = AttentionCoreOf(transformer, spec, shape);
  const double e = shape.element_bytes;
  const double values = transformer.keys_are_values() ? 0 : shape.value();
  const double value_share = transformer.keys_are_values()
                                 ? 0
                                 : shape.value_part * shape.key_value_share;
  const double gate = GateWidth(transformer, shape.heads, shape.output());
  const double width = shape.query + (shape.key_value + values) + gate;
  AddColumnInput(spec, WholeBytes(shape), work);
  Linear packed{
      .rows = shape.tokens,
      .in = shape.hidden,
      .out = width,
      .bias = transformer.attention_bias(),
      .needed =
          (shape.query + (shape.key_value_share + value_share) + gate) / width,
      .local_input_rows = shape.local_tokens,
      .from_norm = true,
      .module = LINEAR_QKV,
      .joined = {shape.query, shape.key_value, values, gate}};
  SetColumnPieces(spec, &packed);
  AddLinear(spec, packed, work);
  if (transformer.query_key_norm()) {
    AddQueryKeyPass(shape, work);
    work->stash_bytes += e * shape.tokens * (shape.query + shape.key_value);
  }
  if (transformer.keys_are_values()) {  // copied before the rotation
    work->stash_bytes += e * shape.tokens * shape.value();
  }
  if (transformer.num_positions() == 0 && !transformer.no_rotation()) {
    AddQueryKeyPass(shape, work);
  }
  if (transformer.has_sparse_index()) {
    AddSparseIndex(transformer, spec, shape, shape.hidden, work);
  }
  AddCore(core, work);
  if (gate > 0) {
    AddGate(shape, shape.tokens * shape.output(), shape.tokens * gate, work);
    work->stash_bytes += e * shape.tokens * shape.output();  // gated outputs
  }
  Linear output{.rows = shape.tokens,
                .in = shape.output(),
                .out = shape.hidden,
                .bias = transformer.attention_output_bias(),
                .input = gate > 0 ? Linear::Input::kOwn : OutputInput(spec),
                .local_output_rows = shape.local_tokens,
                .module = LINEAR_PROJ};
  SetRowPieces(spec, &output);
  AddContextExchange(spec, shape, work);
  AddLinear(spec, output, work);
  AddRowOutput(spec, WholeBytes(shape), work);
  // Input of the first linear layer; queries, keys and values; their weighted
  // sum.
  work->stash_bytes +=
      LocalBytes(shape) + e * shape.tokens * (width + shape.output());
  // Inputs of the two linear layers, gradients of their outputs.
  work->weight_gradient_stash_bytes +=
      2 * LocalBytes(shape) + e * shape.tokens * (width + shape.output());
  return core;
}

}  // namespace weir::models
