// SPDX-License-Identifier: Apache-2.0
// Tests of recomputation by module and by stage: bytes that are not saved and
// FLOP that are repeated, in closed form.
#include "models/recompute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "models/model.h"
#include "models/recompute_work.h"

namespace weir::models::recompute_test {

using testing::ElementsAre;

constexpr double kTokens = 4096, e = 2;

Recompute Parse(const char* text) {
  Recomputation parsed;
  EXPECT_TRUE(ParseRecomputation(text, &parsed)) << text;
  return Recompute(parsed);
}

WorkSpec SpecOf(const Recompute& recompute, int tensor = 1, int expert = 1) {
  WorkSpec spec;
  spec.sequence_length = kTokens;
  spec.flash_attention = true;
  spec.tensor_parallel = tensor;
  spec.sequence_parallel = tensor > 1;
  spec.expert_parallel = expert;
  spec.recompute = recompute;
  return spec;
}

// Returns the first block with this name.
LayerWork BlockOf(const char* model, const WorkSpec& spec,
                  const char* name = "block") {
  const absl::Status valid = ValidateWorkSpec("test", *LoadModel(model), spec);
  EXPECT_TRUE(valid.ok()) << valid;
  for (const LayerWork& layer : LayersOf(*LoadModel(model), spec)) {
    if (layer.name == name) return layer;
  }
  ADD_FAILURE() << "no " << name;
  return {};
}

double FlopsOf(const std::vector<Kernel>& kernels) {
  double flops = 0;
  for (const Kernel& kernel : kernels) flops += kernel.flops;
  return flops;
}

double BytesOf(const std::vector<LayerCollective>& all) {
  double bytes = 0;
  for (const LayerCollective& one : all) bytes += one.bytes * one.count;
  return bytes;
}

// What a recomputation changes in a block.
struct Change {
  double saved_bytes;  // fewer
  double repeated_flops;
  double scratch_bytes;
  double repeated_bytes;  // of collectives
};

Change ChangeOf(const char* model, const char* text, int tensor = 1,
                int expert = 1, const char* name = "block") {
  const LayerWork none =
      BlockOf(model, SpecOf(RECOMPUTE_NONE, tensor, expert), name);
  const LayerWork block =
      BlockOf(model, SpecOf(Parse(text), tensor, expert), name);
  EXPECT_EQ(block.forward, none.forward);
  EXPECT_EQ(block.backward_input, none.backward_input);
  EXPECT_EQ(block.backward_weight, none.backward_weight);
  EXPECT_EQ(block.parameters, none.parameters);
  return {
      none.stash_bytes - block.stash_bytes, FlopsOf(block.recompute),
      block.recompute_scratch_bytes,
      BytesOf(block.backward_collectives) - BytesOf(none.backward_collectives)};
}

TEST(RecomputeTest, TextsAreParsedAndPrinted) {
  for (const char* text :
       {"none", "selective", "operators", "full", "selective:mlp",
        "selective:core_attn+mlp+moe+layernorm+moe_act+mla_up_proj+"
        "shared_experts",
        "full:uniform=4", "full:block=1", "full:every=2"}) {
    EXPECT_EQ(RecomputeText(Parse(text)), text);
  }
  EXPECT_EQ(RecomputeText(Parse("selective:core_attn")), "selective");
  EXPECT_EQ(RecomputeText(Parse("full:uniform=1")), "full");
  EXPECT_EQ(RecomputeText(Parse("full:every=1")), "full");
  Recomputation parsed;
  for (const char* text :
       {"", "half", "none:mlp", "selective:", "selective:norm", "full:mlp",
        "full:block", "full:block=0", "full:block=-1", "full:block=2=3",
        "selective:mlp+"}) {
    EXPECT_FALSE(ParseRecomputation(text, &parsed)) << text;
  }
}

TEST(RecomputeTest, ChoicesWithTheSameEffectAreEqual) {
  EXPECT_EQ(Recompute(RECOMPUTE_FULL), Parse("full:uniform=1"));
  EXPECT_NE(Recompute(RECOMPUTE_FULL), Parse("full:block=1"));
  EXPECT_EQ(Parse("selective:mlp+core_attn"), Parse("selective:core_attn+mlp"));
  EXPECT_EQ(Recompute(Parse("full:block=3").ToProto()), Parse("full:block=3"));
}

// Llama 3.1 8B: gate, up and their product are not saved.
TEST(RecomputeTest, MlpRepeatsTheFeedForwardLayer) {
  constexpr double h = 4096, f = 14336;
  for (const int t : {1, 4}) {
    const Change change = ChangeOf("llama-3.1-8b", "selective:mlp", t);
    EXPECT_NEAR(change.saved_bytes, e * 3 * kTokens * f / t, 1e-3);
    EXPECT_NEAR(change.scratch_bytes, change.saved_bytes, 1e-3);
    EXPECT_NEAR(change.repeated_flops / (6 * kTokens * h * f / t), 1, 1e-12);
    // One all-gather and one reduce-scatter of the whole tensor.
    EXPECT_NEAR(change.repeated_bytes, t == 1 ? 0 : 2 * e * kTokens * h, 1e-3);
  }
}

// Mixtral: 8 experts, 2 per token, all dispatched tokens on one GPU.
TEST(RecomputeTest, MoeRepeatsRouterExchangeAndExperts) {
  constexpr double h = 4096, f = 14336, experts = 8, k = 2;
  for (const int ep : {1, 8}) {
    const Change change =
        ChangeOf("mixtral-8x7b", "selective:moe", 1, ep, "expert block");
    // Scores in fp32; tokens before and after the experts; gate, up, product.
    const double saved =
        4 * kTokens * experts + e * k * kTokens * (2 * h + 3 * f);
    EXPECT_NEAR(change.saved_bytes, saved, 1e-3);
    EXPECT_NEAR(change.scratch_bytes, saved, 1e-3);
    EXPECT_NEAR(change.repeated_flops /
                    (2 * kTokens * h * experts + 6 * k * kTokens * h * f),
                1, 1e-12);
    // Dispatch and return.
    EXPECT_NEAR(change.repeated_bytes, ep == 1 ? 0 : 2 * e * k * kTokens * h,
                1e-3);
  }
}

TEST(RecomputeTest, MoeActRepeatsOnlyTheActivation) {
  const Change change =
      ChangeOf("mixtral-8x7b", "selective:moe_act", 1, 1, "expert block");
  EXPECT_NEAR(change.saved_bytes, e * 2 * kTokens * 14336, 1e-3);
  EXPECT_EQ(change.repeated_flops, 0);
  const LayerWork block = BlockOf(
      "mixtral-8x7b", SpecOf(Parse("selective:moe_act")), "expert block");
  ASSERT_EQ(block.recompute.size(), 1u);
  EXPECT_NEAR(block.recompute[0].bytes, e * 3 * 2 * kTokens * 14336, 1e-3);
}

// DeepSeek-V3: 128 heads of 128 + 64 with values of 128; ranks 1536 and 512;
// 256 experts of 2048, 8 per token, one shared.
TEST(RecomputeTest, LatentAttentionKeepsOnlyLatentVectors) {
  const char* block = "expert block";
  constexpr double heads = 128, plain = 128, rotary = 64, value = 128;
  const Change change =
      ChangeOf("deepseek-v3", "selective:mla_up_proj", 1, 64, block);
  EXPECT_NEAR(change.saved_bytes,
              e * kTokens * heads * (2 * (plain + rotary) + value), 1e-3);
  EXPECT_NEAR(change.repeated_flops /
                  (2 * kTokens * heads *
                   (1536 * (plain + rotary) + 512 * (plain + value))),
              1, 1e-12);
}

TEST(RecomputeTest, NormsBeforeLatentAttentionAndExperts) {
  constexpr double h = 7168;
  const Change experts =
      ChangeOf("deepseek-v3", "selective:layernorm", 1, 64, "expert block");
  EXPECT_NEAR(experts.saved_bytes, 2 * e * kTokens * h, 1e-3);
  EXPECT_EQ(experts.repeated_flops, 0);
  // Norms fused with a GEMM are not.
  EXPECT_EQ(ChangeOf("llama-3.1-8b", "selective:layernorm").saved_bytes, 0);
}

TEST(RecomputeTest, SharedExpertsRepeatTheirGemms) {
  const Change change = ChangeOf("deepseek-v3", "selective:shared_experts", 1,
                                 64, "expert block");
  EXPECT_NEAR(change.saved_bytes, e * 3 * kTokens * 2048, 1e-3);
  EXPECT_NEAR(change.repeated_flops / (6 * kTokens * 7168 * 2048), 1, 1e-12);
}

// The halves of a block are recomputed one after the other.
TEST(RecomputeTest, ModulesAddUp) {
  const auto of = [](const char* text) {
    return ChangeOf("deepseek-v3", text, 1, 64, "expert block");
  };
  const Change up = of("selective:mla_up_proj"), moe = of("selective:moe");
  const Change both = of("selective:mla_up_proj+moe");
  EXPECT_NEAR(both.saved_bytes, up.saved_bytes + moe.saved_bytes, 1e-3);
  EXPECT_NEAR(both.repeated_flops / (up.repeated_flops + moe.repeated_flops), 1,
              1e-12);
  EXPECT_NEAR(both.scratch_bytes, std::max(up.scratch_bytes, moe.scratch_bytes),
              1e-3);
  // Experts include their activation and the shared experts.
  EXPECT_NEAR(of("selective:moe+moe_act+shared_experts").saved_bytes,
              moe.saved_bytes, 1e-3);
}

// Unfused: the scores, as without modules.
TEST(RecomputeTest, CoreAttentionIsTheDefaultModule) {
  WorkSpec spec = SpecOf(RECOMPUTE_SELECTIVE);
  spec.flash_attention = false;
  const LayerWork usual = BlockOf("gpt2-xl", [&] {
    WorkSpec small = spec;
    small.sequence_length = 1024;
    return small;
  }());
  spec.recompute = Parse("selective:core_attn+mlp");
  spec.sequence_length = 1024;
  const LayerWork both = BlockOf("gpt2-xl", spec);
  spec.recompute = Parse("selective:mlp");
  const LayerWork mlp = BlockOf("gpt2-xl", spec);
  spec.recompute = RECOMPUTE_NONE;
  const LayerWork none = BlockOf("gpt2-xl", spec);
  EXPECT_GT(none.stash_bytes, usual.stash_bytes);
  EXPECT_NEAR(none.stash_bytes - both.stash_bytes,
              2 * none.stash_bytes - usual.stash_bytes - mlp.stash_bytes, 1e-3);
}

// Llama 3.1 8B in 4 stages of 8 blocks.
class StagesTest : public testing::Test {
 protected:
  static LayerList Stages(const char* text) {
    const Recompute recompute = Parse(text);
    const LayerList layers =
        ListLayers(*LoadModel("llama-3.1-8b"), SpecOf(recompute));
    partition() = *PartitionEvenly(layers, 4);
    return RecomputeStages(layers, partition(), recompute);
  }
  static Partition& partition() {
    static Partition partition;
    return partition;
  }
  // Returns which blocks of a stage are recomputed.
  static std::vector<bool> RecomputedIn(const LayerList& layers, int stage) {
    std::vector<bool> recomputed;
    for (int i = partition().first[stage]; i < partition().first[stage + 1];
         ++i) {
      if (layers[i].role != LayerRole::kBlock) continue;
      recomputed.push_back(!layers[i].recompute.empty());
    }
    return recomputed;
  }
};

TEST_F(StagesTest, BlockRecomputesTheFirstLayersOfEachStage) {
  const LayerList layers = Stages("full:block=3");
  const LayerWork none = BlockOf("llama-3.1-8b", SpecOf(RECOMPUTE_NONE));
  const LayerWork full = BlockOf("llama-3.1-8b", SpecOf(RECOMPUTE_FULL));
  for (int stage = 0; stage < 4; ++stage) {
    EXPECT_THAT(
        RecomputedIn(layers, stage),
        ElementsAre(true, true, true, false, false, false, false, false));
  }
  EXPECT_EQ(layers[1].recompute, full.recompute);
  EXPECT_EQ(layers[1].stash_bytes, full.stash_bytes);
  EXPECT_EQ(layers[1].recompute_scratch_bytes, full.recompute_scratch_bytes);
  EXPECT_EQ(layers[8].stash_bytes, none.stash_bytes);
  EXPECT_TRUE(layers[8].recompute.empty());
  EXPECT_NE(layers[1].name, layers[8].name);  // prices differ
}

TEST_F(StagesTest, EveryRecomputesEveryNthLayerOfEachStage) {
  const LayerList layers = Stages("full:every=3");
  for (int stage = 0; stage < 4; ++stage) {
    EXPECT_THAT(
        RecomputedIn(layers, stage),
        ElementsAre(false, false, true, false, false, true, false, false));
  }
}

// Groups of 3, 3 and 2 blocks: one input each, and all activations of a group
// during its backward.
TEST_F(StagesTest, UniformSavesOneInputPerGroup) {
  const LayerList layers = Stages("full:uniform=3");
  const LayerWork none = BlockOf("llama-3.1-8b", SpecOf(RECOMPUTE_NONE));
  const double input = e * kTokens * 4096;
  for (int stage = 0; stage < 4; ++stage) {
    int block = 0;
    for (int i = partition().first[stage]; i < partition().first[stage + 1];
         ++i) {
      if (layers[i].role != LayerRole::kBlock) continue;
      EXPECT_EQ(layers[i].recompute, none.forward);
      EXPECT_EQ(layers[i].stash_bytes, block % 3 == 0 ? input : 0);
      EXPECT_NEAR(layers[i].recompute_scratch_bytes,
                  (block % 3 + 1) * none.stash_bytes - input, 1e-3);
      ++block;
    }
    EXPECT_EQ(block, 8);
  }
}

TEST_F(StagesTest, UniformOfOneIsFullRecomputation) {
  const LayerList layers = Stages("full:uniform=1");
  const LayerWork full = BlockOf("llama-3.1-8b", SpecOf(RECOMPUTE_FULL));
  for (size_t i = 1; i + 1 < layers.size(); ++i) {
    EXPECT_EQ(layers[i].stash_bytes, full.stash_bytes);
    EXPECT_EQ(layers[i].recompute, full.recompute);
  }
}

}  // namespace weir::models::recompute_test
