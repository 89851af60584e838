// SPDX-License-Identifier: Apache-2.0
// Fixture for tests that need a GPU. They are skipped if there is none.
#ifndef WEIR_TESTS_CALIBRATE_GPU_GPU_TEST_H_
#define WEIR_TESTS_CALIBRATE_GPU_GPU_TEST_H_

#include <gtest/gtest.h>

#include "calibrate/execute/stage/stage_program.h"
#include "calibrate/gpu/device.h"

namespace weir::calibrate {

class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto facts = FindDevice(0);
    if (absl::IsFailedPrecondition(facts.status())) {
      GTEST_SKIP() << facts.status().message();
    }
    ASSERT_TRUE(facts.ok()) << facts.status();
    format_ = facts->half_format;
  }

  // Returns two blocks with embedding and head, in sizes that suit a GPU.
  StageSpec Spec(bool fused, float dropout) const {
    StageSpec spec;
    spec.work.microbatch_size = 2;
#ifdef WEIR_FAKE_GPU
    spec.work.sequence_length = 24;  // computes in double, element by element
#else
    spec.work.sequence_length = 192;  // more than one tile of attention
#endif
    spec.work.flash_attention = fused;
    spec.work.dropout = dropout > 0;
    spec.format = format_;
    spec.last_layer = 4;
    spec.dropout = dropout;
    spec.fused_attention = fused;
    return spec;
  }

  ElementFormat format_ = ElementFormat::kBf16;
};

// Returns a model with learned positions, LayerNorm, GELU, biases and tied
// embeddings.
inline Model GpuGpt() {
  Model model;
  Transformer& t = *model.mutable_transformer();
  t.set_num_layers(2);
  t.set_hidden_size(256);
  t.set_num_heads(4);
  t.set_num_kv_heads(4);
  t.set_head_size(64);
  t.set_feed_forward_size(1024);
  t.set_vocabulary_size(1000);
  t.set_num_positions(256);
  t.set_attention_bias(true);
  t.set_attention_output_bias(true);
  t.set_feed_forward_bias(true);
  t.set_tied_embeddings(true);
  t.set_causal(true);
  return model;
}

// Returns a model with rotary positions, RMSNorm, SwiGLU, grouped-query
// attention and untied embeddings.
inline Model GpuLlama() {
  Model model;
  Transformer& t = *model.mutable_transformer();
  t.set_num_layers(2);
  t.set_hidden_size(512);
  t.set_num_heads(4);
  t.set_num_kv_heads(2);
  t.set_head_size(128);
  t.set_feed_forward_size(704);
  t.set_vocabulary_size(1000);
  t.set_gated_feed_forward(true);
  t.set_rms_norm(true);
  t.set_causal(true);
  return model;
}

}  // namespace weir::calibrate

#endif  // WEIR_TESTS_CALIBRATE_GPU_GPU_TEST_H_
