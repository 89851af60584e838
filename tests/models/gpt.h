// SPDX-License-Identifier: Apache-2.0
// GPT models with the symbols of the literature, for tests of layer work.
#ifndef WEIR_TESTS_MODELS_GPT_H_
#define WEIR_TESTS_MODELS_GPT_H_

#include <gtest/gtest.h>

#include <ostream>
#include <vector>

#include "models/layer_work.h"

namespace weir::models {

// A GPT with the sizes of the literature: a heads, h hidden, l layers, V words.
struct Gpt {
  double a = 16, h = 1024, l = 24, V = 51200;
  double s = 512, b = 4;
};
inline void PrintTo(const Gpt& gpt, std::ostream* out) {
  *out << "a " << gpt.a << ", h " << gpt.h << ", l " << gpt.l << ", V " << gpt.V
       << ", s " << gpt.s << ", b " << gpt.b;
}

inline Model ModelOf(const Gpt& gpt) {
  Model model;
  Transformer& transformer = *model.mutable_transformer();
  transformer.set_num_layers(gpt.l);
  transformer.set_hidden_size(gpt.h);
  transformer.set_num_heads(gpt.a);
  transformer.set_num_kv_heads(gpt.a);
  transformer.set_head_size(gpt.h / gpt.a);
  transformer.set_feed_forward_size(4 * gpt.h);
  transformer.set_vocabulary_size(gpt.V);
  transformer.set_num_positions(gpt.s);
  transformer.set_attention_bias(true);
  transformer.set_attention_output_bias(true);
  transformer.set_feed_forward_bias(true);
  transformer.set_tied_embeddings(true);
  transformer.set_causal(true);
  return model;
}

inline WorkSpec SpecOf(const Gpt& gpt) {
  WorkSpec spec;
  spec.microbatch_size = static_cast<int>(gpt.b);
  spec.sequence_length = static_cast<int>(gpt.s);
  return spec;
}

inline double Flops(const std::vector<Kernel>& kernels) {
  double flops = 0;
  for (const Kernel& kernel : kernels) flops += kernel.flops;
  return flops;
}

#define EXPECT_SAME(actual, expected) \
  EXPECT_NEAR((actual) / (expected), 1, 1e-9)

}  // namespace weir::models

#endif  // WEIR_TESTS_MODELS_GPT_H_
