// SPDX-License-Identifier: Apache-2.0
#include "results/views/features.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/textproto.h"
#include "results/views/cells.h"

namespace weir::results::features_test {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> FeaturesIn(const std::string& text) {
  Result result;
  result.mutable_provenance()->set_scenario(text);
  return FeaturesOf(ScenarioOf(result));
}

TEST(ResultFeaturesTest, AreEmptyForPlainScenarios) {
  EXPECT_THAT(FeaturesIn(""), IsEmpty());
  EXPECT_THAT(FeaturesIn("a file of { another version"), IsEmpty());
  EXPECT_THAT(FeaturesIn(R"(
      model: "gpt2" cluster: "dgx-a100" schedule: "1f1b"
      parallelism { tensor: 2 pipeline: 2 sequence_parallel: true }
      training { optimizer: ADAM recompute: RECOMPUTE_FULL
                 distributed_optimizer: true first_moment: STATE_FP32 })"),
              IsEmpty());
}

TEST(ResultFeaturesTest, NameWhatChangesTheResult) {
  const std::pair<const char*, const char*> kCases[] = {
      {"training { lora { rank: 16 } }", "LoRA of rank 16"},
      {"training { lora { rank: 8 target_modules: LINEAR_FC1 } }",
       "LoRA of rank 8 in linear_fc1"},
      {"training { optimizer: MUON }", "Muon"},
      {"training { optimizer: DIST_MUON muon_num_ns_steps: 7 }",
       "distributed Muon with 7 iterations"},
      {"training { fully_sharded: true }", "fully sharded"},
      {"training { second_moment: STATE_BF16 }", "second moment in bf16"},
      {"training { attention_format: OPERAND_FP8 }", "attention in fp8"},
      {"training { dispatch_format: OPERAND_16_BIT }", "dispatch in 16 bits"},
      {"training { first_blocks_in_16_bits: 1 }", "first 1 block in 16 bits"},
      {"training { recompute_modules: [MLP, MOE_ACT] }",
       "recomputed mlp and moe_act"},
      {"training { recompute_method: RECOMPUTE_BLOCK recompute_num_layers: 3 }",
       "recomputed 3 blocks per stage"},
      {"training { cpu_offloading_num_layers: 2 }",
       "activations of 2 blocks per stage on the host"},
      {"training { optimizer_offload_fraction: 0.5 }",
       "50.0 % of the optimizer on the host"},
      {"training { mtp_num_layers: 0 }", "0 MTP modules"},
      {"batch { packed_sequences { log_normal { mean: 8 deviation: 2 } } }",
       "log-normal documents of 8 tokens (deviation 2)"},
      {"parallelism { layout: \"Et|tL\" }", "layout Et|tL"},
      {"parallelism { vocabulary_parallel: VOCABULARY_TWO_BARRIERS }",
       "sharded vocabulary with two barriers"},
      {"parallelism { context: 4 context_method: CONTEXT_A2A }",
       "context by a2a"},
      {"training { moe_router_fusion: true }", "fused router"},
      {"training { moe_router_fusion: false }", "router not fused"},
      {"training { cuda_graph_scope: [CUDA_GRAPH_ATTN, "
       "CUDA_GRAPH_MOE_ROUTER] }",
       "CUDA graphs of attn, moe_router"},
      {"communication { token_dispatcher: TOKENS_DEEPEP }", "DeepEP"},
      {"communication { token_dispatcher: TOKENS_HYBRID_EP }", "HybridEP"},
      {"cluster_changes { topology: FAT_TREE }", "topology fat-tree"},
      {"slow { gpu: 3 speed: 0.5 }", "1 slow part"},
      {"set_figures: \"gemm.sustained_rate=0.85\"",
       "set gemm.sustained_rate=0.85"}};
  for (const auto& [scenario, feature] : kCases) {
    EXPECT_THAT(FeaturesIn(scenario), ElementsAre(feature)) << scenario;
  }
}

TEST(ResultFeaturesTest, AreCommonOnlyIfEqual) {
  Result results[2];
  results[0].mutable_provenance()->set_scenario(
      "training { lora { rank: 16 } fully_sharded: true }");
  results[1] = results[0];
  EXPECT_EQ(CommonFeatures(results), "LoRA of rank 16, fully sharded");
  results[1].mutable_provenance()->clear_scenario();
  EXPECT_EQ(CommonFeatures(results), "");
}

TEST(ResultFeaturesTest, ShapesHaveTheNumberOfExpertRanks) {
  Result result;
  result.set_tensor_parallel(1);
  result.set_pipeline_parallel(2);
  result.set_data_parallel(4);
  result.mutable_provenance()->set_scenario("parallelism { expert: 4 }");
  EXPECT_TRUE(ShapeText(result).ends_with(", expert 4")) << ShapeText(result);
  EXPECT_EQ(ShapeCell(result), "tp 1, pp 2, dp 4, ep 4, 0 microbatches");
}

}  // namespace weir::results::features_test
