// SPDX-License-Identifier: Apache-2.0
// Tests of mixtures of experts: kernels, all-to-all exchanges, memory,
// parameters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/layer_work.h"
#include "models/model.h"
#include "tests/models/gpt.h"

namespace weir::models::expert_layers_test {

using testing::ElementsAre;
using testing::HasSubstr;
using Group = LayerCollective::Group;

// Mixtral 8x7B: 8 experts, 2 of them for each token.
constexpr double kHidden = 4096, kFeedForward = 14336, kTokens = 4096,
                 kKeyValue = 1024, kSequence = 4096;

WorkSpec Spec() {
  WorkSpec spec;
  spec.sequence_length = 4096;
  spec.flash_attention = true;
  return spec;
}

LayerWork Block(const WorkSpec& spec) {
  return LayersOf(*LoadModel("mixtral-8x7b"), spec)[1];
}

TEST(ExpertLayersTest, EachTokenPassesItsExpertsAndTheRouter) {
  const double attention =
      2 * kTokens * kHidden * (2 * kHidden + 2 * kKeyValue) +
      4 * kTokens * kSequence * kHidden;
  EXPECT_SAME(Flops(Block(Spec()).forward),
              attention + 2 * kTokens * kHidden * 8 +
                  2 * 6 * kTokens * kHidden * kFeedForward);
}

TEST(ExpertLayersTest, FlopDoNotDependOnHowExpertsAreSharedOut) {
  const Model model = *LoadModel("mixtral-8x7b");
  const double flops = ModelFlops(LayersOf(model, Spec()), 1);
  for (int expert : {1, 2, 8}) {
    for (int tensor : {1, 2, 4}) {
      WorkSpec spec = Spec();
      spec.expert_parallel = expert;
      spec.tensor_parallel = tensor;
      spec.sequence_parallel = tensor > 1;
      EXPECT_SAME(ModelFlops(LayersOf(model, spec), tensor), flops);
    }
  }
}

TEST(ExpertLayersTest, ExpertsAreSharedOutAndTheRestIsNot) {
  WorkSpec spec = Spec();
  const LayerWork whole = Block(spec);
  EXPECT_EQ(whole.expert_parameters, 8 * 3 * kHidden * kFeedForward);
  EXPECT_EQ(whole.parameters - whole.expert_parameters,
            2 * kHidden * kHidden + 2 * kHidden * kKeyValue + 2 * kHidden +
                8 * kHidden);
  spec.expert_parallel = 4;
  const LayerWork part = Block(spec);
  EXPECT_EQ(part.expert_parameters, whole.expert_parameters / 4);
  EXPECT_EQ(part.parameters - part.expert_parameters,
            whole.parameters - whole.expert_parameters);
  const std::vector<LayerWork> layers =
      LayersOf(*LoadModel("mixtral-8x7b"), spec);
  EXPECT_EQ(StageExpertParameters(layers, 0, 3), 2 * part.expert_parameters);
}

TEST(ExpertLayersTest, LocalExpertsRunAsOneBatchedGemm) {
  WorkSpec spec = Spec();
  spec.expert_parallel = 4;
  for (const Kernel& kernel : Block(spec).forward) {
    if (kernel.part != KernelPart::kFeedForwardGemm) continue;
    EXPECT_EQ(kernel.batch, 2);
    EXPECT_EQ(kernel.m, 2 * kTokens / 2);
  }
}

// Dispatch and combine, in the forward and in the backward: every token is sent
// to two experts.
TEST(ExpertLayersTest, TokensAreExchangedTwiceEachWay) {
  WorkSpec spec = Spec();
  EXPECT_TRUE(Block(spec).forward_collectives.empty());
  spec.expert_parallel = 8;
  const LayerCollective twice = {.kind = CollectiveKind::kAllToAll,
                                 .group = Group::kExpert,
                                 .bytes = 2 * 2 * kTokens * kHidden,
                                 .count = 2};
  EXPECT_THAT(Block(spec).forward_collectives, ElementsAre(twice));
  EXPECT_THAT(Block(spec).backward_collectives, ElementsAre(twice));
}

TEST(ExpertLayersTest, TensorParallelGroupsGatherWhatTheirGpusGot) {
  WorkSpec spec = Spec();
  spec.expert_parallel = 2;
  spec.tensor_parallel = 4;
  spec.sequence_parallel = true;
  const LayerCollective exchange = {.kind = CollectiveKind::kAllToAll,
                                    .group = Group::kExpert,
                                    .bytes = 2 * 2 * kTokens * kHidden / 4};
  const LayerCollective gather = {.kind = CollectiveKind::kAllGather,
                                  .bytes = 2 * 2 * kTokens * kHidden};
  const LayerCollective scatter = {.kind = CollectiveKind::kReduceScatter,
                                   .bytes = 2 * 2 * kTokens * kHidden};
  const auto all = Block(spec).forward_collectives;
  ASSERT_EQ(all.size(), 6u);
  EXPECT_THAT(std::vector(all.begin() + 2, all.end()),
              ElementsAre(exchange, gather, scatter, exchange));
}

// Norms; attention (q, k, v, residual sum, its input, statistics); router
// (input and probabilities); twice the tokens at the input, inside and at the
// output of the experts.
TEST(ExpertLayersTest, KeepsTheInputsOfEveryGemm) {
  EXPECT_SAME(Block(Spec()).stash_bytes,
              2 * (2 * kTokens * kHidden + kTokens * kHidden +
                   kTokens * (2 * kHidden + 2 * kKeyValue)) +
                  4 * 32 * kSequence + 2 * kTokens * kHidden + 4 * kTokens * 8 +
                  2 * (2 * kTokens * (kHidden + 3 * kFeedForward + kHidden)));
}

TEST(ExpertLayersTest, CapacityPadsTheGemmsNotTheNeed) {
  Model model = *LoadModel("mixtral-8x7b");
  const double needed = ModelFlops(LayersOf(model, Spec()), 1);
  model.mutable_transformer()->set_capacity_factor(1.25);
  const std::vector<LayerWork> layers = LayersOf(model, Spec());
  EXPECT_SAME(ModelFlops(layers, 1), needed);
  for (const Kernel& kernel : layers[1].forward) {
    if (kernel.part != KernelPart::kFeedForwardGemm) continue;
    EXPECT_SAME(kernel.performed_flops / kernel.flops, 1.25);
  }
}

// Without padding, experts process only the tokens that they accept.
TEST(ExpertLayersTest, DroppedTokensAreNotProcessed) {
  Model model = *LoadModel("mixtral-8x7b");
  const auto experts = [&](double accepted) {
    WorkSpec spec = Spec();
    spec.accepted_tokens = accepted;
    double flops = 0, performed = 0;
    const LayerWork block = LayersOf(model, spec)[1];
    for (const Kernel& kernel : block.forward) {
      if (kernel.part != KernelPart::kFeedForwardGemm) continue;
      flops += kernel.flops;
      performed +=
          kernel.performed_flops > 0 ? kernel.performed_flops : kernel.flops;
    }
    return std::pair(flops, performed);
  };
  const auto [all, all_performed] = experts(1);
  model.mutable_transformer()->set_capacity_factor(1.25);
  model.mutable_transformer()->set_unpadded_capacity(true);
  EXPECT_SAME(experts(1).first, all);
  EXPECT_SAME(experts(1).second, all_performed);
  EXPECT_SAME(experts(0.9).first, 0.9 * all);
  EXPECT_SAME(experts(0.9).second, 0.9 * all_performed);
}

TEST(ExpertLayersTest, SpecMustFitTheExperts) {
  const Model model = *LoadModel("mixtral-8x7b");
  WorkSpec spec = Spec();
  spec.expert_parallel = 3;
  spec.tensor_parallel = 2;
  const std::string message(ValidateWorkSpec("s", model, spec).message());
  EXPECT_THAT(message, HasSubstr("expert_parallel is 3, expected a divisor of "
                                 "the model's 8 experts"));
  EXPECT_THAT(message, HasSubstr("sequence_parallel is off"));
  spec.expert_parallel = 1;
  spec.expert_tensor_parallel = 3;
  EXPECT_THAT(std::string(ValidateWorkSpec("s", model, spec).message()),
              HasSubstr("expert_tensor_parallel is 3, expected a divisor of "
                        "the 14336 feed-forward units of an expert"));
  spec.expert_tensor_parallel = 0;
  spec.tensor_parallel = 1;
  spec.expert_parallel = 2;
  EXPECT_THAT(
      std::string(
          ValidateWorkSpec("s", *LoadModel("mistral-7b-v0.1"), spec).message()),
      HasSubstr("the model has no experts"));
}

// Tokens of the GPUs of an expert are gathered, whatever the tensor-parallel
// size is, so that the FLOP of all GPUs remain the same.
TEST(ExpertLayersTest, FoldedExpertsChangeNoFlop) {
  const Model model = *LoadModel("mixtral-8x7b");
  const double flops = ModelFlops(LayersOf(model, Spec()), 1);
  for (int each : {1, 2, 4, 8}) {
    for (int tensor : {1, 2, 4}) {
      WorkSpec spec = Spec();
      spec.expert_parallel = 4;
      spec.expert_tensor_parallel = each;
      spec.tensor_parallel = tensor;
      spec.sequence_parallel = tensor > 1;
      EXPECT_SAME(ModelFlops(LayersOf(model, spec), tensor), flops);
      EXPECT_EQ(Block(spec).expert_parameters,
                8 * 3 * kHidden * kFeedForward / (4 * each));
    }
  }
}

// Checks that each of four tensor-parallel GPUs sends its quarter of 4096
// tokens to two experts, and that nothing else is exchanged without expert
// tensor parallelism.
TEST(ExpertLayersTest, FoldedExpertsExchangeTokensOfTheirOwnGroups) {
  WorkSpec spec = Spec();
  spec.expert_parallel = 8;
  spec.tensor_parallel = 4;
  spec.sequence_parallel = true;
  spec.expert_tensor_parallel = 1;
  const double sent = 2 * 2 * kTokens * kHidden / 4;
  const LayerCollective exchange = {.kind = CollectiveKind::kAllToAll,
                                    .group = Group::kExpert,
                                    .bytes = sent};
  LayerCollective twice = exchange;
  twice.count = 2;
  auto all = Block(spec).forward_collectives;
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all.back(), twice);
  double rows = 0;
  for (const Kernel& kernel : Block(spec).forward) {
    if (kernel.part != KernelPart::kFeedForwardGemm) continue;
    EXPECT_EQ(kernel.batch, 1);
    rows = kernel.m;
  }
  // As many tokens as each GPU sends arrive at its expert.
  EXPECT_EQ(rows * 2 * kHidden, sent);
  spec.expert_tensor_parallel = 2;
  all = Block(spec).forward_collectives;
  ASSERT_EQ(all.size(), 6u);
  EXPECT_THAT(
      std::vector(all.begin() + 2, all.end()),
      ElementsAre(exchange,
                  LayerCollective{.kind = CollectiveKind::kAllGather,
                                  .group = Group::kExpertTensor,
                                  .bytes = 2 * sent},
                  LayerCollective{.kind = CollectiveKind::kReduceScatter,
                                  .group = Group::kExpertTensor,
                                  .bytes = 2 * sent},
                  exchange));
}

// The most loaded GPU computes and receives more tokens than the model needs on
// average, which is no useful work.
TEST(ExpertLayersTest, LoadedExpertsNeedTimeAndMemoryButNoFlop) {
  const Model model = *LoadModel("mixtral-8x7b");
  WorkSpec spec = Spec();
  spec.expert_parallel = 4;
  const LayerWork even = Block(spec);
  const double flops = ModelFlops(LayersOf(model, spec), 1);
  spec.expert_load = 1.5;
  const LayerWork loaded = Block(spec);
  EXPECT_SAME(ModelFlops(LayersOf(model, spec), 1), flops);
  ASSERT_EQ(loaded.forward.size(), even.forward.size());
  for (size_t i = 0; i < even.forward.size(); ++i) {
    const Kernel& kernel = loaded.forward[i];
    if (kernel.part != KernelPart::kFeedForwardGemm) continue;
    EXPECT_SAME(kernel.m, 1.5 * even.forward[i].m);
    EXPECT_SAME(kernel.performed_flops, 1.5 * even.forward[i].flops);
  }
  EXPECT_SAME(loaded.forward_collectives[0].bytes,
              1.5 * even.forward_collectives[0].bytes);
  // Inputs, both inner tensors and their product, of half the experts' tokens;
  // outputs are saved where they return to.
  EXPECT_SAME(loaded.stash_bytes - even.stash_bytes,
              0.5 * 2 * (2 * kTokens * (kHidden + 3 * kFeedForward)));
  EXPECT_EQ(loaded.parameters, even.parameters);
}

struct Published {
  const char* config;
  double parameters;
};

// Parameter counts of the model cards and checkpoints.
TEST(ExpertLayersTest, HuggingFaceConfigsCountThePublishedParameters) {
  for (const Published& published :
       {Published{R"({"model_type": "qwen2_moe", "hidden_size": 2048,
                      "num_hidden_layers": 24, "num_attention_heads": 16,
                      "num_key_value_heads": 16, "vocab_size": 151936,
                      "intermediate_size": 5632, "num_experts": 60,
                      "moe_intermediate_size": 1408,
                      "shared_expert_intermediate_size": 5632})",
                  14315784192},
        Published{R"({"model_type": "qwen3_moe", "hidden_size": 2048,
                      "num_hidden_layers": 48, "num_attention_heads": 32,
                      "num_key_value_heads": 4, "head_dim": 128,
                      "vocab_size": 151936, "num_experts": 128,
                      "moe_intermediate_size": 768})",
                  30532122624},
        Published{R"({"model_type": "deepseek", "hidden_size": 2048,
                      "num_hidden_layers": 28, "num_attention_heads": 16,
                      "num_key_value_heads": 16, "vocab_size": 102400,
                      "intermediate_size": 10944, "n_routed_experts": 64,
                      "num_experts_per_tok": 6, "n_shared_experts": 2,
                      "moe_intermediate_size": 1408, "moe_layer_freq": 1,
                      "first_k_dense_replace": 1})",
                  16375728128}}) {
    const auto model = ParseModel("config.json", published.config);
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ(CountParameters(*model), published.parameters);
    const std::vector<LayerWork> layers = LayersOf(*model, Spec());
    EXPECT_EQ(StageParameters(layers, 0, static_cast<int>(layers.size())),
              published.parameters);
  }
}

}  // namespace weir::models::expert_layers_test
