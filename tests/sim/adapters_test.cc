// SPDX-License-Identifier: Apache-2.0
// Tests of low-rank adapters, Muon and DeepEP in whole scenarios: memory,
// gradients and steps in closed form; the fast estimate equals the simulation,
// and bounds hold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/textproto.h"
#include "calibrate/pricing/expert_exchange.h"
#include "models/kernels.h"
#include "scenarios/scenario.h"
#include "sim/bounds/bound.h"
#include "sim/costs/muon.h"
#include "sim/costs/stage_costs.h"
#include "sim/costs/work_spec.h"
#include "sim/fast/fast_simulator.h"
#include "sim/simulate.h"

namespace weir::sim::adapters_test {

using testing::HasSubstr;

absl::StatusOr<scenarios::ResolvedScenario> Resolve(const std::string& text) {
  Scenario scenario;
  const absl::Status parsed = ParseTextProto("test", text, &scenario);
  EXPECT_TRUE(parsed.ok()) << parsed;
  return scenarios::ResolveScenario("test", scenario);
}

std::string Llama(const std::string& training, int pipeline = 2, int data = 4,
                  const std::string& more = "") {
  return absl::StrCat(R"(model: "llama-3.1-8b" cluster: "dgx-h100" num_nodes: 1
                         parallelism { pipeline: )",
                      pipeline, " data: ", data, more,
                      R"( } batch { global_batch_size: 32
                          sequence_length: 4096 } training { )",
                      training, "}");
}

std::string Moe(const std::string& more, int expert = 16) {
  return absl::StrCat(R"(model: "qwen3-30b-a3b" cluster: "dgx-h100" num_nodes: 2
                         parallelism { pipeline: 1 data: 16 expert: )",
                      expert,
                      R"( } batch { global_batch_size: 32
                          sequence_length: 4096 } )",
                      more);
}

constexpr char kDeepEp[] = "communication { token_dispatcher: TOKENS_DEEPEP } ";

Costs CostsOf(const std::string& text, int num_stages) {
  const auto resolved = Resolve(text);
  EXPECT_TRUE(resolved.ok()) << resolved.status();
  auto costs =
      ComputeCosts(*resolved, num_stages, std::vector<int>(num_stages, 1));
  EXPECT_TRUE(costs.ok()) << costs.status();
  return *std::move(costs);
}

void ExpectFastEqualsFull(const std::string& text) {
  const auto resolved = Resolve(text);
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  const auto full = Simulate(*resolved, {});
  ASSERT_TRUE(full.ok()) << full.status();
  const auto estimate = FastSimulator().Estimate(*resolved);
  ASSERT_TRUE(estimate.ok()) << estimate.status();
  EXPECT_NEAR(estimate->batch_seconds / full->batch_seconds(), 1, 1e-9);
  const auto bound = Bounder().Bound(*resolved);
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_LE(bound->batch_seconds, full->batch_seconds() * (1 + 1e-9));
  EXPECT_GT(bound->batch_seconds, 0.3 * full->batch_seconds());
  for (const double bytes : bound->peak_bytes) {
    EXPECT_LE(bytes, full->peak_memory_bytes() * (1 + 1e-9));
  }
}

// 16 bits per weight; 4 bytes of gradient and 12 of optimizer states per
// parameter of adapters.
TEST(LoraTest, OnlyAdaptersHaveGradientsAndStates) {
  const Costs all = CostsOf(Llama(""), 2);
  const Costs lora = CostsOf(Llama("lora { rank: 16 }"), 2);
  // Inputs plus outputs: qkv 4096 + 6144, proj 8192, fc1 4096 + 28672, fc2
  // 18432.
  const double adapters = 16.0 * (10240 + 8192 + 32768 + 18432) * 16;
  for (int s = 0; s < 2; ++s) {
    const StageParameters& before = all.stages[s].parameters;
    const StageParameters& after = lora.stages[s].parameters;
    EXPECT_NEAR(after.weight_bytes, before.weight_bytes + 2 * adapters, 1);
    EXPECT_NEAR(after.gradient_bytes, 4 * adapters, 1);
    EXPECT_NEAR(after.optimizer_state_bytes, 12 * adapters, 1);
    EXPECT_NEAR(after.written_bytes(), 2 * adapters, 1);
    EXPECT_NEAR(after.gathered_bytes(), 2 * adapters, 1);
    EXPECT_NEAR(before.gradient_bytes, 2 * before.weight_bytes, 1);
  }
}

TEST(LoraTest, BackwardWithoutWeightGradientsIsAThirdShorter) {
  const Costs all = CostsOf(Llama(""), 2);
  const Costs lora = CostsOf(Llama("lora { rank: 16 }"), 2);
  // FLOP: 2 of 3 parts, and those of adapters.
  EXPECT_NEAR(*lora.forward_flops / *all.forward_flops, 1, 0.02);
  EXPECT_LT(*lora.model_flops / *all.model_flops, 0.75);
  EXPECT_GT(*lora.model_flops / *all.model_flops, 2.0 / 3);
  EXPECT_LT(lora.stages[0].seconds.backward_parts->weight,
            0.2 * all.stages[0].seconds.backward_parts->weight);
  EXPECT_LT(lora.stages[0].step.seconds, all.stages[0].step.seconds);
}

TEST(LoraTest, TiedEmbeddingsAreNotReduced) {
  const std::string text =
      R"(model: "gemma-3-27b" cluster: "dgx-h100" num_nodes: 1
         parallelism { pipeline: 2 data: 4 }
         batch { global_batch_size: 8 sequence_length: 4096 })";
  EXPECT_GT(CostsOf(text, 2).tied_gradient_bytes, 0);
  EXPECT_EQ(
      CostsOf(text + " training { lora { rank: 8 } }", 2).tied_gradient_bytes,
      0);
}

TEST(LoraTest, FastEqualsFull) {
  ExpectFastEqualsFull(Llama("lora { rank: 16 }"));
  ExpectFastEqualsFull(Llama("lora { rank: 16 } distributed_optimizer: false"));
  ExpectFastEqualsFull(Llama("lora { rank: 16 target_modules: LINEAR_QKV }", 2,
                             2, " tensor: 2 sequence_parallel: true"));
  ExpectFastEqualsFull(Llama("lora { rank: 16 } fully_sharded: true", 1, 8));
  ExpectFastEqualsFull(Moe("training { lora { rank: 8 } }"));
}

// Adapters of experts that etp GPUs share, r = 8, h = 2048, f = 768: of both
// halves of the first layer, r h / etp + 2 r f / etp, and of the second,
// r f / etp + r h. The size of tensor groups does not matter.
TEST(LoraTest, AdaptersOfExpertsFollowTheirOwnTensorParallelism) {
  for (const int etp : {1, 2, 4}) {
    const std::string text = absl::StrCat(
        R"(model: "qwen3-30b-a3b" cluster: "dgx-h100" num_nodes: 2
           parallelism { tensor: 4 sequence_parallel: true data: 4 expert: 4
                         expert_tensor: )",
        etp,
        R"( } batch { global_batch_size: 32 sequence_length: 4096 }
           training { lora { rank: 8 } })");
    const auto resolved = Resolve(text);
    ASSERT_TRUE(resolved.ok()) << resolved.status();
    const models::LayerList layers =
        models::ListLayers(resolved->model, MakeWorkSpec(*resolved));
    const double expected = 8.0 * (2048 + 3 * 768) / etp + 8 * 2048;
    EXPECT_NEAR(layers[1].expert_adapter_parameters / expected, 1, 1e-9) << etp;
    ExpectFastEqualsFull(text);
  }
}

TEST(LoraTest, RefusesWhatIsNotSimulated) {
  const auto error = [](const std::string& training, int pipeline = 2,
                        const std::string& more = "") {
    return std::string(
        Resolve(Llama(training, pipeline, 1, more)).status().message());
  };
  EXPECT_THAT(error("lora { target_modules: LINEAR_QKV }"),
              HasSubstr("training.lora.rank is 0, expected"));
  EXPECT_THAT(error("lora { rank: 7 }", 1, " tensor: 2"),
              HasSubstr("training.lora.rank is 7, expected a multiple of "
                        "parallelism.tensor 2"));
  EXPECT_THAT(error("lora { rank: 8 } optimizer: MUON"),
              HasSubstr("training.optimizer is MUON, expected ADAM"));
  EXPECT_THAT(error("lora { rank: 8 } recompute: RECOMPUTE_OPERATORS"),
              HasSubstr("training.recompute is RECOMPUTE_OPERATORS"));
}

// 4 bytes of momentum instead of 8 of Adam's moments per weight of a matrix.
TEST(MuonTest, MatricesHaveOneState) {
  const Costs adam = CostsOf(Llama("distributed_optimizer: false"), 2);
  const Costs muon = CostsOf(Llama("optimizer: MUON"), 2);
  const double matrices = 16.0 * 4096 * (4096 + 2 * 1024 + 4096 + 3 * 14336);
  for (int s = 0; s < 2; ++s) {
    EXPECT_NEAR(adam.stages[s].parameters.optimizer_state_bytes -
                    muon.stages[s].parameters.optimizer_state_bytes,
                4 * matrices, 1);
    EXPECT_EQ(adam.stages[s].parameters.gradient_bytes,
              muon.stages[s].parameters.gradient_bytes);
  }
}

Orthogonalization UpdatesOf(const std::string& training, double part) {
  const auto resolved = *Resolve(Llama(training, 1));
  const models::LayerList layers =
      models::ListLayers(resolved.model, MakeWorkSpec(resolved));
  const Costs costs = CostsOf(Llama(training, 1), 1);
  return OrthogonalizationOf(layers, 0, static_cast<int>(layers.size()),
                             resolved.scenario.training(), part,
                             resolved.device, costs.prices, *costs.peak_flops);
}

TEST(MuonTest, FlopAreThoseOfTheIterations) {
  const auto iteration = [](double m, double n) {
    return 4 * m * m * n + 2 * m * m * m;
  };
  const double block = 2 * iteration(4096, 4096) + 2 * iteration(1024, 4096) +
                       iteration(4096, 28672) + iteration(4096, 14336);
  EXPECT_NEAR(UpdatesOf("optimizer: MUON", 1).flops / (5 * 32 * block), 1,
              1e-9);
  EXPECT_NEAR(UpdatesOf("optimizer: MUON muon_num_ns_steps: 9", 1).flops /
                  (9 * 32 * block),
              1, 1e-9);
  // 192 matrices, of which each of 4 ranks owns 48, and of 5 at most 39.
  EXPECT_NEAR(UpdatesOf("optimizer: MUON", 0.25).flops / (5 * 8 * block), 1,
              1e-9);
  EXPECT_NEAR(
      UpdatesOf("optimizer: MUON", 0.2).flops / (5 * 32 * block * 39 / 192), 1,
      1e-9);
}

TEST(MuonTest, RanksOfTheDistributedFormOwnMatrices) {
  const Costs whole = CostsOf(Llama("optimizer: MUON"), 2);
  const Costs part = CostsOf(Llama("optimizer: DIST_MUON"), 2);
  EXPECT_EQ(whole.optimizer_shards, 1);
  EXPECT_EQ(part.optimizer_shards, 4);
  EXPECT_GT(part.owned_matrices_per_layer, 0);
  EXPECT_EQ(whole.owned_matrices_per_layer, 0);
  EXPECT_NEAR(part.stages[0].step.orthogonalization_seconds /
                  whole.stages[0].step.orthogonalization_seconds,
              0.25, 1e-9);
  EXPECT_GT(whole.stages[0].step.orthogonalization_seconds, 0);
}

TEST(MuonTest, FastEqualsFull) {
  ExpectFastEqualsFull(Llama("optimizer: MUON"));
  ExpectFastEqualsFull(Llama("optimizer: DIST_MUON"));
  ExpectFastEqualsFull(Moe("training { optimizer: MUON }"));
  ExpectFastEqualsFull(Moe("training { optimizer: DIST_MUON }"));
}

TEST(MuonTest, RefusesShardedStates) {
  const auto error = [](const std::string& training) {
    return std::string(Resolve(Llama(training)).status().message());
  };
  EXPECT_THAT(error("optimizer: MUON distributed_optimizer: true"),
              HasSubstr("training.distributed_optimizer is on, expected off, "
                        "or training.optimizer DIST_MUON"));
  EXPECT_THAT(error("optimizer: DIST_MUON distributed_optimizer: false"),
              HasSubstr("training.distributed_optimizer is off, expected on"));
  EXPECT_THAT(error("optimizer: ADAM muon_num_ns_steps: 3"),
              HasSubstr("training.muon_num_ns_steps is 3, expected"));
}

// Two microbatches, each with two dispatches and two combines per block, one
// after another with the kernels.
TEST(DeepEpTest, ExchangesTakeTheirTimeInEveryBlock) {
  for (const int nodes : {1, 2}) {
    const int gpus = 8 * nodes;
    const std::string text = absl::StrCat(
        R"(model: "qwen3-30b-a3b" cluster: "dgx-h100" num_nodes: )", nodes,
        " parallelism { pipeline: 1 data: ", gpus, " expert: ", gpus,
        " } batch { global_batch_size: ", 2 * gpus, " sequence_length: 4096 } ",
        kDeepEp);
    const auto scenario = *Resolve(text);
    const Costs costs = CostsOf(text, 1);
    calibrate::CollectiveGroup group;
    group.num_ranks = gpus;
    group.ranks_per_node = 8;
    group.intra_bytes_per_second = 450e9;
    group.inter_bytes_per_second = 50e9;
    double seconds = 0, bytes = 0, tokens = 0;
    for (const auto* all :
         {&costs.stages[0].communication.forward_collectives,
          &costs.stages[0].communication.backward_collectives}) {
      for (const models::LayerCollective& one : *all) {
        ASSERT_EQ(one.group, models::LayerCollective::Group::kExpert);
        seconds +=
            one.count * calibrate::ExchangeCost(scenario.device.collectives(),
                                                one.routing, group)
                            .Seconds();
        bytes += one.count * one.bytes;
        tokens += one.count * one.routing.tokens;
      }
    }
    // 48 blocks, 4 exchanges each, in 16 bits.
    EXPECT_EQ(tokens, 48 * 4 * 4096);
    EXPECT_NEAR(
        bytes / (tokens * 2 * 2048 * models::GroupsReached(128, 8, gpus)), 1,
        1e-9);
    const auto result = Simulate(scenario, {});
    ASSERT_TRUE(result.ok()) << result.status();
    const double exchanged =
        result->breakdown().expert_communication_seconds() / (2 * seconds);
    // Flows carry whole bytes. Across nodes, those of NVLink and of the network
    // share the links of a GPU for a part of the time.
    EXPECT_GE(exchanged, 1 - 1e-6);
    EXPECT_LE(exchanged, nodes == 1 ? 1 + 1e-3 : 1.01);
  }
}

TEST(DeepEpTest, FastEqualsFull) {
  ExpectFastEqualsFull(Moe(kDeepEp));
  ExpectFastEqualsFull(Moe(kDeepEp, 8));
  ExpectFastEqualsFull(Moe(R"(communication { token_dispatcher: TOKENS_DEEPEP
                             dispatch_multiprocessors: 8 }
             training { dispatch_format: OPERAND_FP8_BLOCK })"));
  ExpectFastEqualsFull(Moe("training { dispatch_format: OPERAND_FP8_BLOCK }"));
  ExpectFastEqualsFull(
      Moe("communication { token_dispatcher: TOKENS_HYBRID_EP }"));
}

TEST(DeepEpTest, RefusesModelsWithoutExperts) {
  const auto error = [](const std::string& text) {
    return std::string(Resolve(text).status().message());
  };
  EXPECT_THAT(error(Llama("") + kDeepEp),
              HasSubstr("communication.token_dispatcher is TOKENS_DEEPEP, "
                        "expected none: the model has no experts"));
  EXPECT_THAT(error(Moe("communication { dispatch_multiprocessors: 8 }")),
              HasSubstr("communication.dispatch_multiprocessors is 8, "
                        "expected communication.token_dispatcher"));
  EXPECT_THAT(error(Moe("communication { token_dispatcher: TOKENS_DEEPEP "
                        "dispatch_multiprocessors: 133 }")),
              HasSubstr("communication.dispatch_multiprocessors is 133, "
                        "expected at most 132, those of "));
}

TEST(FormatTest, AttentionIn8BitsIsFasterByTheSpeedOfTheDevice) {
  const Costs wide = CostsOf(Llama(""), 1);
  const Costs narrow = CostsOf(Llama("attention_format: OPERAND_FP8"), 1);
  const auto attention = [](const Costs& costs) {
    double seconds = 0;
    for (const PricedKernel& kernel : costs.stages[0].kernels->forward) {
      if (kernel.kernel.kind == models::Kernel::Kind::kAttention)
        seconds += kernel.seconds;
    }
    return seconds;
  };
  EXPECT_NEAR(attention(wide) / attention(narrow), 1.21, 0.02);
  ExpectFastEqualsFull(Llama("attention_format: OPERAND_FP8"));
}

TEST(FormatTest, DevicesWithoutTheFormatRefuseIt) {
  std::string text = Llama("attention_format: OPERAND_MXFP8");
  EXPECT_THAT(std::string(Resolve(text).status().message()),
              HasSubstr("training.attention_format is mxfp8, but device "
                        "H100-SXM5-80GB has no attention_speed for mxfp8"));
}

}  // namespace weir::sim::adapters_test
