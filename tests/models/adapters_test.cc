// SPDX-License-Identifier: Apache-2.0
// Tests of low-rank adapters and of the list of matrices: parameters, FLOP and
// saved bytes in closed form.
#include "models/adapters.h"

#include <gtest/gtest.h>

#include "models/layer_list.h"
#include "models/layer_work.h"
#include "models/model.h"
#include "tests/models/gpt.h"

namespace weir::models::adapters_test {

constexpr uint32_t kAllModules = ~0u;

// Llama 3.1 8B.
constexpr double kHidden = 4096, kFeedForward = 14336, kKeyValue = 1024,
                 kTokens = 4096;
constexpr int kRank = 16;

WorkSpec Spec() {
  WorkSpec spec;
  spec.sequence_length = 4096;
  spec.flash_attention = true;
  return spec;
}

WorkSpec Lora(uint32_t modules = kAllModules) {
  WorkSpec spec = Spec();
  spec.lora = {kRank, modules};
  return spec;
}

LayerWork Block(const WorkSpec& spec) {
  return LayersOf(*LoadModel("llama-3.1-8b"), spec)[1];
}

// Inputs plus outputs of the four linear layers of a block.
double Widths() {
  const double qkv = kHidden + (kHidden + 2 * kKeyValue);
  const double proj = kHidden + kHidden;
  const double fc1 = kHidden + 2 * kFeedForward;
  const double fc2 = kFeedForward + kHidden;
  return qkv + proj + fc1 + fc2;
}

TEST(AdaptersTest, ParametersAreRankTimesInputPlusOutput) {
  const LayerWork frozen = Block(Lora());
  EXPECT_SAME(frozen.adapter_parameters, kRank * Widths());
  EXPECT_SAME(frozen.parameters - frozen.adapter_parameters,
              Block(Spec()).parameters);
  EXPECT_EQ(frozen.expert_adapter_parameters, 0);
  const LayerWork some = Block(Lora(1u << LINEAR_PROJ | 1u << LINEAR_FC2));
  EXPECT_SAME(some.adapter_parameters,
              kRank * (kHidden + kHidden + kFeedForward + kHidden));
}

TEST(AdaptersTest, OnlyAdaptersHaveWeightGradients) {
  const LayerWork all = Block(Spec()), frozen = Block(Lora());
  const double adapters = 2 * kTokens * kRank * Widths();
  EXPECT_SAME(Flops(frozen.forward), Flops(all.forward) + adapters);
  EXPECT_SAME(Flops(frozen.backward_input),
              Flops(all.backward_input) + adapters);
  EXPECT_SAME(Flops(frozen.backward_weight), adapters);
}

TEST(AdaptersTest, EmbeddingAndHeadAreFrozen) {
  const Model model = *LoadModel("llama-3.1-8b");
  const std::vector<LayerWork> layers = LayersOf(model, Lora());
  for (const LayerWork& layer : {layers.front(), layers.back()}) {
    EXPECT_EQ(layer.adapter_parameters, 0);
    EXPECT_TRUE(layer.backward_weight.empty());
  }
  EXPECT_FALSE(LayersOf(model, Spec()).back().backward_weight.empty());
}

TEST(AdaptersTest, ProductsWithARemainForTheBackward) {
  EXPECT_SAME(Block(Lora()).stash_bytes - Block(Spec()).stash_bytes,
              4 * 2 * kTokens * kRank);
}

// Each GPU has 1 / t of A and B of layers split by columns, and of A of the
// others.
TEST(AdaptersTest, TensorParallelismSplitsAdapters) {
  const double columns =
      kHidden + (kHidden + 2 * kKeyValue) + kHidden + 2 * kFeedForward;
  const double rows = kHidden + kFeedForward, outputs = 2 * kHidden;
  for (const int t : {2, 4}) {
    WorkSpec spec = Lora();
    spec.tensor_parallel = t;
    spec.sequence_parallel = true;
    const LayerWork part = Block(spec);
    EXPECT_SAME(part.adapter_parameters,
                kRank * ((columns + rows) / t + outputs));
    // The FLOP of all GPUs are those of one.
    EXPECT_SAME(Flops(part.backward_weight) * t,
                2 * kTokens * kRank * Widths());
  }
}

TEST(AdaptersTest, ExpertsOfAGpuShareAnAdapter) {
  const Model model = *LoadModel("mixtral-8x7b");
  WorkSpec spec = Lora(1u << LINEAR_FC1 | 1u << LINEAR_FC2);
  for (const int expert : {1, 2, 8}) {
    spec.expert_parallel = expert;
    const LayerWork block = LayersOf(model, spec)[1];
    EXPECT_SAME(block.expert_adapter_parameters,
                kRank * (kHidden + 2 * kFeedForward + kFeedForward + kHidden));
    EXPECT_EQ(block.expert_adapter_parameters, block.adapter_parameters);
    EXPECT_SAME(block.expert_parameters - block.expert_adapter_parameters,
                8 * 3 * kHidden * kFeedForward / expert);
  }
}

TEST(AdaptersTest, QuantizedFrozenLayersKeepNoCopyForTheWeightGradient) {
  WorkSpec spec = Lora();
  spec.quantization.forward = spec.quantization.input_gradient =
      spec.quantization.weight_gradient = OPERAND_FP8_BLOCK;
  const LayerWork block = Block(spec);
  EXPECT_SAME(Flops(block.backward_weight), 2 * kTokens * kRank * Widths());
  EXPECT_SAME(block.stash_bytes, Block(Lora()).stash_bytes);
}

TEST(MatricesTest, AreThoseOfTheLinearLayersOfBlocks) {
  WorkSpec spec = Spec();
  EXPECT_TRUE(Block(spec).matrices.empty());
  spec.lists_matrices = true;
  for (const char* name : {"llama-3.1-8b", "mixtral-8x7b", "deepseek-v3"}) {
    const std::vector<LayerWork> layers = LayersOf(*LoadModel(name), spec);
    EXPECT_TRUE(layers.front().matrices.empty());
    for (size_t l = 1; l + 1 < layers.size(); ++l) {
      double parameters = 0;
      for (const WeightMatrix& matrix : layers[l].matrices) {
        parameters += matrix.count * matrix.rows * matrix.columns;
      }
      // All but norms, biases and the copy of the embedding.
      const double own = layers[l].parameters - layers[l].shared_parameters;
      EXPECT_LE(parameters, own) << name;
      EXPECT_GT(parameters, 0.999 * own) << name;
    }
  }
}

TEST(MatricesTest, QueriesKeysAndValuesAreSeparate) {
  WorkSpec spec = Spec();
  spec.lists_matrices = true;
  const std::vector<WeightMatrix> matrices = Block(spec).matrices;
  ASSERT_EQ(matrices.size(), 6);
  EXPECT_EQ(matrices[0].columns, kHidden);
  EXPECT_EQ(matrices[1].columns, kKeyValue);
  EXPECT_EQ(matrices[2].columns, kKeyValue);
}

}  // namespace weir::models::adapters_test
