// SPDX-License-Identifier: Apache-2.0
#include "models/layer_work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/model.h"

namespace weir {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// A GPT with the sizes of the literature: a heads, h hidden, l layers, V words.
struct Gpt {
  double a = 16, h = 1024, l = 24, V = 51200;
  double s = 512, b = 4;
};

Model ModelOf(const Gpt& gpt) {
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

WorkSpec SpecOf(const Gpt& gpt) {
  WorkSpec spec;
  spec.microbatch_size = static_cast<int>(gpt.b);
  spec.sequence_length = static_cast<int>(gpt.s);
  return spec;
}

LayerWork BlockOf(const Gpt& gpt, const WorkSpec& spec) {
  return LayersOf(ModelOf(gpt), spec)[1];
}

double Flops(const std::vector<Kernel>& kernels) {
  double flops = 0;
  for (const Kernel& kernel : kernels) flops += kernel.flops;
  return flops;
}

#define EXPECT_SAME(actual, expected) \
  EXPECT_NEAR((actual) / (expected), 1, 1e-9)

// Korthikanti et al. 2022, equations 1 to 4 and table 2.
class ActivationTest : public testing::TestWithParam<Gpt> {
 protected:
  void SetUp() override {
    spec_ = SpecOf(GetParam());
    spec_.dropout = true;
  }
  double Stash() { return BlockOf(GetParam(), spec_).stash_bytes; }
  double sbh() { return GetParam().s * GetParam().b * GetParam().h; }
  // 5as/h
  double Core() { return 5 * GetParam().a * GetParam().s / GetParam().h; }

  WorkSpec spec_;
};

TEST_P(ActivationTest, OneGpuKeeps34Plus5asOverH) {
  EXPECT_SAME(Stash(), sbh() * (34 + Core()));
}

TEST_P(ActivationTest, TensorParallelDividesAllBut10) {
  for (double t : {2, 4, 8}) {
    spec_.tensor_parallel = static_cast<int>(t);
    EXPECT_SAME(Stash(), sbh() * (10 + 24 / t + Core() / t));
  }
}

TEST_P(ActivationTest, SequenceParallelDividesAll) {
  for (double t : {2, 4, 8}) {
    spec_.tensor_parallel = static_cast<int>(t);
    spec_.sequence_parallel = true;
    EXPECT_SAME(Stash(), sbh() * (34 + Core()) / t);
  }
}

TEST_P(ActivationTest, SelectiveRecomputationDropsTheAttentionCore) {
  spec_.recompute = Recompute::kSelective;
  const LayerWork block = BlockOf(GetParam(), spec_);
  EXPECT_SAME(block.stash_bytes, sbh() * 34);
  EXPECT_SAME(block.recompute_scratch_bytes, sbh() * Core());
  const Gpt& gpt = GetParam();
  EXPECT_SAME(Flops(block.recompute), 4 * gpt.b * gpt.s * gpt.s * gpt.h);
  spec_.tensor_parallel = 4;
  spec_.sequence_parallel = true;
  EXPECT_SAME(Stash(), sbh() * 34 / 4);
}

TEST_P(ActivationTest, FullRecomputationKeepsTheInput) {
  spec_.recompute = Recompute::kFull;
  const LayerWork block = BlockOf(GetParam(), spec_);
  EXPECT_SAME(block.stash_bytes, sbh() * 2);
  EXPECT_SAME(block.stash_bytes + block.recompute_scratch_bytes,
              sbh() * (34 + Core()));
  EXPECT_EQ(Flops(block.recompute), Flops(block.forward));
}

TEST_P(ActivationTest, FusedAttentionKeepsOneStatisticPerRow) {
  spec_.flash_attention = true;
  const Gpt& gpt = GetParam();
  EXPECT_SAME(Stash(), sbh() * 34 + 4 * gpt.a * gpt.s * gpt.b);
}

TEST_P(ActivationTest, FusedAttentionLeavesNothingToSelect) {
  spec_.flash_attention = true;
  const double none = Stash();
  spec_.recompute = Recompute::kSelective;
  EXPECT_EQ(Stash(), none);
  EXPECT_TRUE(BlockOf(GetParam(), spec_).recompute.empty());
}

TEST_P(ActivationTest, WithoutDropoutTheMasksAreGone) {
  spec_.dropout = false;
  const Gpt& gpt = GetParam();
  EXPECT_SAME(Stash(), sbh() * (32 + 2 * gpt.a * gpt.s / gpt.h));
}

TEST_P(ActivationTest, WiderElementsScaleAllButTheMasks) {
  spec_.bytes_per_element = 4;
  const Gpt& gpt = GetParam();
  // 34 = 2 x 16 + 2 masks, 5 = 2 x 2 + 1 mask.
  EXPECT_SAME(Stash(), sbh() * (66 + 9 * gpt.a * gpt.s / gpt.h));
}

// Qi et al. 2023: M_W = 32 sbh.
TEST_P(ActivationTest, BackwardWeightWaitsFor32sbh) {
  EXPECT_SAME(BlockOf(GetParam(), spec_).weight_gradient_stash_bytes,
              sbh() * 32);
}

TEST_P(ActivationTest, HeadKeepsItsInputsAndTheLogits) {
  const Gpt& gpt = GetParam();
  const LayerWork head = LayersOf(ModelOf(gpt), spec_).back();
  // Korthikanti et al. 2022, section 4.3: 4sbh (1 + V/h).
  EXPECT_SAME(head.stash_bytes, 4 * sbh() * (1 + gpt.V / gpt.h));
}

// Narayanan et al. 2021 (SC21), with and without recomputation.
TEST_P(ActivationTest, FlopAreMegatrons) {
  const Gpt& gpt = GetParam();
  for (bool fused : {false, true}) {
    for (double t : {1, 2, 4}) {
      spec_.flash_attention = fused;
      spec_.tensor_parallel = static_cast<int>(t);
      spec_.recompute = Recompute::kFull;
      const std::vector<LayerWork> layers = LayersOf(ModelOf(gpt), spec_);
      const double work = gpt.b * gpt.s * gpt.l * gpt.h * gpt.h;
      EXPECT_SAME(
          ModelFlops(layers, static_cast<int>(t)),
          72 * work * (1 + gpt.s / (6 * gpt.h) + gpt.V / (12 * gpt.h * gpt.l)));
      double again = 0;
      for (const LayerWork& layer : layers) again += t * Flops(layer.recompute);
      EXPECT_SAME(
          ModelFlops(layers, static_cast<int>(t)) + again,
          96 * work * (1 + gpt.s / (6 * gpt.h) + gpt.V / (16 * gpt.l * gpt.h)));
    }
  }
}

TEST_P(ActivationTest, LayersAddUpToTheModelsParameters) {
  const Model model = ModelOf(GetParam());
  const std::vector<LayerWork> layers = LayersOf(model, spec_);
  const int n = static_cast<int>(layers.size());
  EXPECT_EQ(StageParameters(layers, 0, n), CountParameters(model));
  EXPECT_EQ(StageParameters(layers, 0, n - 1) +
                StageParameters(layers, n - 1, n) - GetParam().V * GetParam().h,
            CountParameters(model));
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, ActivationTest,
    testing::Values(
        Gpt{}, Gpt{.a = 96, .h = 12288, .l = 96, .s = 2048, .b = 1},
        Gpt{.a = 8, .h = 512, .l = 1, .V = 1000, .s = 128, .b = 7}));

WorkSpec SmallSpec(const Model& model) {
  WorkSpec spec;
  spec.microbatch_size = 2;
  spec.sequence_length =
      static_cast<int>(std::min(DefaultSequenceLength(model), 512u));
  return spec;
}

TEST(LayersOfTest, EveryPresetAddsUpToItsParameters) {
  for (const char* name :
       {"gpt2", "gpt2-xl", "bert-base-uncased", "llama-2-7b", "llama-2-70b",
        "mistral-7b-v0.1", "gpt3-175b", "gpt-2.2b"}) {
    const Model model = *LoadModel(name);
    const std::vector<LayerWork> layers = LayersOf(model, SmallSpec(model));
    EXPECT_EQ(layers.size(), model.transformer().num_layers() + 2);
    EXPECT_EQ(StageParameters(layers, 0, static_cast<int>(layers.size())),
              CountParameters(model))
        << name;
  }
}

TEST(LayersOfTest, TiedHeadCarriesTheTableAndSaysSo) {
  const Model gpt2 = *LoadModel("gpt2");
  const std::vector<LayerWork> layers = LayersOf(gpt2, SmallSpec(gpt2));
  EXPECT_EQ(layers.back().shared_parameters, 50257.0 * 768);
  EXPECT_EQ(layers.back().parameters, 50257.0 * 768 + 2 * 768);
  const Model llama = *LoadModel("llama-2-7b");
  const LayerWork head = LayersOf(llama, SmallSpec(llama)).back();
  EXPECT_EQ(head.shared_parameters, 0);
  EXPECT_EQ(head.parameters, 32000.0 * 4096 + 4096);
}

TEST(LayersOfTest, TensorParallelShardsMatricesButNotNorms) {
  const Model model = *LoadModel("gpt2");
  WorkSpec spec = SmallSpec(model);
  spec.tensor_parallel = 4;
  const LayerWork block = LayersOf(model, spec)[1];
  const double h = 768;
  // Matrices 12 hh and their split biases 7 h by 4; norms and the two other
  // biases whole.
  EXPECT_EQ(block.parameters, (12 * h * h + 7 * h) / 4 + 6 * h);
}

// Llama, part by part: no biases, no masks, three feed-forward matrices.
TEST(LayersOfTest, LlamaShapesFollowFromTheSameParts) {
  const Model model = *LoadModel("llama-2-70b");
  WorkSpec spec = SmallSpec(model);
  spec.flash_attention = true;
  const double T = 2 * 512, h = 8192, kv = 1024, f = 28672;
  const LayerWork block = LayersOf(model, spec)[1];
  EXPECT_SAME(Flops(block.forward), 2 * T * h * (h + 2 * kv) + 4 * T * 512 * h +
                                        2 * T * h * h + 6 * T * h * f);
  EXPECT_SAME(block.stash_bytes,
              2 * (2 * T * h + 2 * T * h + T * h    // norms, linear inputs
                   + T * (h + 2 * kv) + 3 * T * f)  // q, k, v; gate, up, out
                  + 4 * 64 * 512 * 2);              // statistics
  EXPECT_SAME(block.weight_gradient_stash_bytes,
              2 * (3 * T * h + T * f                            // inputs
                   + T * (h + 2 * kv) + 2 * T * h + 2 * T * f)  // gradients
  );
}

TEST(LayersOfTest, FewKeyValueHeadsRepeatUnderTensorParallelism) {
  const Model model = *LoadModel("llama-2-70b");  // 8 key-value heads
  WorkSpec spec = SmallSpec(model);
  spec.flash_attention = true;
  const double flops = ModelFlops(LayersOf(model, spec), 1);
  for (int t : {2, 8, 16, 32}) {
    spec.tensor_parallel = t;
    const std::vector<LayerWork> layers = LayersOf(model, spec);
    EXPECT_SAME(ModelFlops(layers, t), flops);
    const Kernel& qkv = layers[1].forward[1];
    EXPECT_EQ(qkv.n, 8192.0 / t + 2 * 128 * std::max(1, 8 / t)) << t;
    EXPECT_EQ(qkv.performed_flops > 0, t > 8);
  }
}

TEST(LayersOfTest, FusedCausalAttentionPerformsHalfAndFlopCountInFull) {
  const Gpt gpt;
  Model model = ModelOf(gpt);
  WorkSpec spec = SpecOf(gpt);
  spec.flash_attention = true;
  const auto attention = [&](bool backward) {
    const LayerWork block = LayersOf(model, spec)[1];
    for (const Kernel& kernel :
         backward ? block.backward_input : block.forward) {
      if (kernel.kind == Kernel::Kind::kAttention) return kernel;
    }
    return Kernel();
  };
  const double full = 4 * gpt.b * gpt.s * gpt.s * gpt.h;
  EXPECT_SAME(attention(false).flops, full);
  EXPECT_SAME(attention(false).performed_flops, full / 2);
  EXPECT_SAME(attention(true).flops, 2 * full);
  EXPECT_SAME(attention(true).performed_flops, 2.5 * full / 2);
  model.mutable_transformer()->set_causal(false);
  EXPECT_SAME(attention(false).performed_flops, full);
  // Each query sees at most a quarter of the keys.
  model.mutable_transformer()->set_causal(true);
  model.mutable_transformer()->set_sliding_window(gpt.s / 4);
  EXPECT_SAME(attention(false).flops, full / 4);
  EXPECT_SAME(attention(false).performed_flops, full / 4 * 7 / 8);
}

TEST(LayersOfTest, BlocksCallTwoCollectivesEachWay) {
  const Model model = *LoadModel("gpt2");
  WorkSpec spec = SmallSpec(model);
  EXPECT_EQ(LayersOf(model, spec)[1].tensor_collectives_forward, 0);
  spec.tensor_parallel = 2;
  LayerWork block = LayersOf(model, spec)[1];
  EXPECT_EQ(block.tensor_collectives_forward, 2);
  EXPECT_EQ(block.tensor_collectives_backward, 2);
  EXPECT_EQ(block.tensor_collective_bytes, 2.0 * 2 * 512 * 768);
  spec.recompute = Recompute::kFull;
  EXPECT_EQ(LayersOf(model, spec)[1].tensor_collectives_backward, 4);
}

TEST(LayersOfTest, EveryLayerButTheLastHandsOnOneTensor) {
  const Model model = *LoadModel("bert-base-uncased");
  const std::vector<LayerWork> layers = LayersOf(model, SmallSpec(model));
  for (size_t i = 0; i + 1 < layers.size(); ++i) {
    EXPECT_EQ(layers[i].output_bytes, 2.0 * 2 * 512 * 768);
  }
  EXPECT_EQ(layers.back().output_bytes, 0);
}

TEST(LayersOfTest, BertWithOnlyAPoolerHasNoLogits) {
  Model model = *LoadModel("bert-base-uncased");
  const WorkSpec spec = SmallSpec(model);
  const double with_logits = Flops(LayersOf(model, spec).back().forward);
  EXPECT_SAME(with_logits, 2 * 1024.0 * 768 * 768 + 2 * 1024.0 * 768 * 30522);
  model.mutable_transformer()->set_mlm_head(false);
  model.mutable_transformer()->set_pooler(true);
  const LayerWork head = LayersOf(model, spec).back();
  EXPECT_SAME(Flops(head.forward), 2 * 2.0 * 768 * 768);
  EXPECT_EQ(head.shared_parameters, 0);
}

TEST(LayersOfTest, MeasuredLayersScaleFromTheirMicrobatch) {
  const Model model = *ParseModel("x", R"pb(
    measured {
      microbatch_size: 4
      layers {
        name: "a"
        forward_seconds: 1
        backward_seconds: 2
        activation_bytes: 80
        parameter_bytes: 40
        cut_bytes: 120
      }
      layers { name: "b" forward_seconds: 3 activation_bytes: 8 }
    })pb");
  WorkSpec spec;
  spec.microbatch_size = 6;
  const std::vector<LayerWork> layers = LayersOf(model, spec);
  ASSERT_EQ(layers.size(), 2u);
  EXPECT_EQ(layers[0].role, LayerRole::kMeasured);
  EXPECT_EQ(layers[0].forward_seconds, 1.5);
  EXPECT_EQ(layers[0].backward_seconds, 3.0);
  EXPECT_EQ(layers[0].recompute_seconds, 0.0);
  EXPECT_EQ(layers[0].stash_bytes, 120);
  EXPECT_EQ(layers[0].output_bytes, 180);
  EXPECT_EQ(layers[0].parameters, 10);
  EXPECT_EQ(layers[1].output_bytes, 12);
  spec.recompute = Recompute::kFull;
  const std::vector<LayerWork> again = LayersOf(model, spec);
  EXPECT_EQ(again[1].recompute_seconds, 4.5);
  EXPECT_EQ(again[1].stash_bytes, 180);
  EXPECT_EQ(again[1].recompute_scratch_bytes, 12);
}

TEST(ValidateWorkSpecTest, ReportsAllProblemsAtOnce) {
  const Model model = *LoadModel("gpt2");
  WorkSpec spec;
  spec.microbatch_size = 0;
  spec.sequence_length = 2048;
  spec.tensor_parallel = 5;
  spec.bytes_per_element = 100;
  EXPECT_THAT(
      std::string(ValidateWorkSpec("s", model, spec).message()),
      AllOf(HasSubstr("s: microbatch_size is 0"),
            HasSubstr("sequence_length is 2048, expected at most the model's "
                      "1024 positions"),
            HasSubstr("tensor_parallel is 5, expected a divisor of the model's "
                      "12 attention heads"),
            HasSubstr("bytes_per_element is 100")));
}

TEST(ValidateWorkSpecTest, TensorParallelMustFitKeyValueHeads) {
  Model model = *LoadModel("llama-2-70b");
  WorkSpec spec = SmallSpec(model);
  for (int t : {1, 2, 4, 8, 16, 64}) {
    spec.tensor_parallel = t;
    EXPECT_TRUE(ValidateWorkSpec("s", model, spec).ok()) << t;
  }
  model.mutable_transformer()->set_num_heads(24);
  model.mutable_transformer()->set_num_kv_heads(4);
  spec.tensor_parallel = 6;
  EXPECT_THAT(std::string(ValidateWorkSpec("s", model, spec).message()),
              HasSubstr("4 key-value heads"));
}

TEST(ValidateWorkSpecTest, MeasuredModelsAreWhole) {
  const Model model =
      *ParseModel("x", "measured { layers { forward_seconds: 1 } }");
  WorkSpec spec;
  EXPECT_TRUE(ValidateWorkSpec("s", model, spec).ok());
  spec.tensor_parallel = 2;
  EXPECT_FALSE(ValidateWorkSpec("s", model, spec).ok());
  spec.tensor_parallel = -2;
  EXPECT_FALSE(ValidateWorkSpec("s", model, spec).ok());
}

}  // namespace
}  // namespace weir
