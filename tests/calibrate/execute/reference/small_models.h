// SPDX-License-Identifier: Apache-2.0
// Models small enough for finite differences, with sizes that do not divide
// each other.
#ifndef WEIR_TESTS_CALIBRATE_EXECUTE_REFERENCE_SMALL_MODELS_H_
#define WEIR_TESTS_CALIBRATE_EXECUTE_REFERENCE_SMALL_MODELS_H_

#include "calibrate/execute/stage/stage_program.h"
#include "models/model.pb.h"

namespace weir::calibrate {

// Returns a model with learned positions, LayerNorm, GELU, biases and tied
// embeddings.
inline Model SmallGpt() {
  Model model;
  Transformer& t = *model.mutable_transformer();
  t.set_num_layers(2);
  t.set_hidden_size(6);
  t.set_num_heads(3);
  t.set_num_kv_heads(3);
  t.set_head_size(2);
  t.set_feed_forward_size(10);
  t.set_vocabulary_size(11);
  t.set_num_positions(7);
  t.set_attention_bias(true);
  t.set_attention_output_bias(true);
  t.set_feed_forward_bias(true);
  t.set_tied_embeddings(true);
  t.set_causal(true);
  return model;
}

// Returns a model with rotary positions, RMSNorm, SwiGLU, grouped-query
// attention and untied embeddings.
inline Model SmallLlama(int num_layers = 2) {
  Model model;
  Transformer& t = *model.mutable_transformer();
  t.set_num_layers(num_layers);
  t.set_hidden_size(6);
  t.set_num_heads(4);
  t.set_num_kv_heads(2);
  t.set_head_size(2);
  t.set_feed_forward_size(5);
  t.set_vocabulary_size(11);
  t.set_gated_feed_forward(true);
  t.set_rms_norm(true);
  t.set_causal(true);
  return model;
}

// Returns a stage with all layers and two sequences of five tokens.
inline StageSpec SmallSpec(bool fused, float dropout) {
  StageSpec spec;
  spec.work.microbatch_size = 2;
  spec.work.sequence_length = 5;
  spec.format = ElementFormat::kFp32;
  spec.last_layer = 4;
  spec.dropout = dropout;
  spec.fused_attention = fused;
  return spec;
}

}  // namespace weir::calibrate

#endif  // WEIR_TESTS_CALIBRATE_EXECUTE_REFERENCE_SMALL_MODELS_H_
