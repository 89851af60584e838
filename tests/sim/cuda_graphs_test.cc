// SPDX-License-Identifier: Apache-2.0
// Checks what the host launches with CUDA graphs, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "base/textproto.h"
#include "scenarios/scenario.h"
#include "sim/bounds/bound.h"
#include "sim/costs/stage_costs.h"
#include "sim/fast/fast_simulator.h"
#include "sim/simulate.h"
#include "tests/sim/methods_agree.h"

namespace weir::sim::cuda_graphs_test {

using testing::HasSubstr;

absl::StatusOr<scenarios::ResolvedScenario> Resolve(
    const std::string& training, const std::string& model = "qwen3-30b-a3b",
    const std::string& parallelism = "expert: 4 data: 4 pipeline: 2") {
  Scenario scenario;
  const absl::Status parsed = ParseTextProto(
      "test",
      absl::StrCat("model: \"", model, R"(" cluster: "dgx-h100" num_nodes: 1
                   runtime: "megatron-lm" schedule: "1f1b"
                   batch { global_batch_size: 32 sequence_length: 1024 }
                   parallelism { )",
                   parallelism, " } training { ", training, " }"),
      &scenario);
  EXPECT_TRUE(parsed.ok()) << parsed;
  return scenarios::ResolveScenario("test", scenario);
}

std::string Error(const std::string& training,
                  const std::string& model = "qwen3-30b-a3b") {
  return std::string(Resolve(training, model).status().message());
}

StageLaunches LaunchesWith(const std::string& training) {
  const auto resolved = Resolve(training);
  EXPECT_TRUE(resolved.ok()) << resolved.status();
  const auto costs = ComputeCosts(*resolved, 2, {1, 1});
  EXPECT_TRUE(costs.ok()) << costs.status();
  return costs->stages[1].launches;
}

// 24 blocks of a stage, each with one graph for attention and router.
TEST(CudaGraphsTest, OneLaunchReplacesThoseOfAGraph) {
  const double fused =
      LaunchesWith("moe_router_fusion: true").forward.forward_launches;
  EXPECT_EQ(LaunchesWith("").forward.forward_launches - fused, 24 * (58 - 17));
  const double graph =
      LaunchesWith(
          "moe_router_fusion: true "
          "cuda_graph_scope: [CUDA_GRAPH_ATTN, CUDA_GRAPH_MOE_ROUTER]")
          .forward.forward_launches;
  const double router = LaunchesWith("cuda_graph_scope: CUDA_GRAPH_MOE_ROUTER")
                            .forward.forward_launches;
  EXPECT_LT(graph, router);
  EXPECT_LT(router, fused);
  // The preparation of the exchange belongs to the same graph.
  EXPECT_EQ(
      LaunchesWith("cuda_graph_scope: [CUDA_GRAPH_ATTN, CUDA_GRAPH_MOE_ROUTER, "
                   "CUDA_GRAPH_MOE_PREPROCESS]")
          .forward.forward_launches,
      graph - 24 * 14);
  const StageLaunches whole =
      LaunchesWith("cuda_graph_scope: CUDA_GRAPH_FULL_ITERATION");
  EXPECT_EQ(whole.forward_seconds, 0);
  EXPECT_EQ(whole.backward_input_seconds, 0);
  EXPECT_EQ(whole.backward_weight_seconds, 0);
}

// Layers of experts are one module.
TEST(CudaGraphsTest, GraphsCallNoModules) {
  const StageLaunches eager = LaunchesWith("");
  EXPECT_EQ(eager.forward.modules, 24 * 4);
  EXPECT_EQ(eager.backward_input.modules, 24 * 4);
  const StageLaunches graph = LaunchesWith("cuda_graph_scope: CUDA_GRAPH_ATTN");
  EXPECT_EQ(graph.forward.modules, 24 * 2);
  EXPECT_EQ(graph.backward_input.modules, 24 * 2);
}

// The graph of a backward recomputes what the graph of the forward computed.
TEST(CudaGraphsTest, RecomputationIsInGraphs) {
  const std::string recompute =
      "recompute: RECOMPUTE_SELECTIVE "
      "recompute_modules: [LAYERNORM, MLA_UP_PROJ] ";
  const auto recomputed = [&](const std::string& scopes) {
    const auto resolved =
        Resolve(recompute + scopes, "deepseek-v3", "expert: 8 data: 8");
    EXPECT_TRUE(resolved.ok()) << resolved.status();
    const auto costs = ComputeCosts(*resolved, 1, {1});
    EXPECT_TRUE(costs.ok()) << costs.status();
    return costs->stages[0].launches.backward_input.forward_launches;
  };
  const double eager = recomputed("");
  const double router = recomputed("cuda_graph_scope: CUDA_GRAPH_MOE_ROUTER");
  const double both =
      recomputed("cuda_graph_scope: [CUDA_GRAPH_ATTN, CUDA_GRAPH_MOE_ROUTER]");
  // Up-projections and norm of the attention, and the norm of the experts.
  EXPECT_GT(both, 0);
  EXPECT_LT(both, router);
  EXPECT_LE(router, eager);
}

// Each stage gathers what the ranks of the group before have sent.
TEST(CudaGraphsTest, AGraphOfTheWholeStepLaunchesItsCollectives) {
  const auto seconds = [](const std::string& training) {
    Scenario scenario;
    EXPECT_TRUE(
        ParseTextProto("test",
                       absl::StrCat(R"(model: "llama-3.1-8b" cluster: "dgx-h100"
                        num_nodes: 1 runtime: "megatron-lm" schedule: "1f1b"
                        parallelism { tensor: 4 pipeline: 2 }
                        batch { global_batch_size: 8 sequence_length: 512 }
                        set_figures: "runtime.collective_launch_seconds.value=1"
                        training { )",
                                    training, " }"),
                       &scenario)
            .ok());
    const auto resolved = scenarios::ResolveScenario("test", scenario);
    EXPECT_TRUE(resolved.ok()) << resolved.status();
    const auto result = Simulate(*resolved);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? result->batch_seconds() : 0;
  };
  EXPECT_GT(seconds(""), 10);
  EXPECT_LT(seconds("cuda_graph_scope: CUDA_GRAPH_FULL_ITERATION"), 5);
}

TEST(CudaGraphsTest, FastEqualsFullAndBoundsHold) {
  double eager = 0;
  for (const char* training :
       {"", "cuda_graph_scope: [CUDA_GRAPH_ATTN, CUDA_GRAPH_MOE_ROUTER]",
        "cuda_graph_scope: CUDA_GRAPH_FULL_ITERATION"}) {
    const auto resolved = Resolve(training);
    ASSERT_TRUE(resolved.ok()) << resolved.status();
    const auto full = Simulate(*resolved);
    const auto fast = FastSimulator().Estimate(*resolved);
    const auto bound = BoundOf(*resolved);
    ASSERT_TRUE(full.ok() && fast.ok() && bound.ok())
        << full.status() << fast.status() << bound.status();
    ExpectMethodsAgree(*full, *fast, bound->batch_seconds);
    // The launches of short sequences take longer than their kernels.
    if (eager == 0) {
      eager = full->batch_seconds();
    } else {
      EXPECT_LT(full->batch_seconds(), eager) << training;
    }
  }
}

TEST(CudaGraphsTest, RefusesScopesThatNoProgramHas) {
  EXPECT_THAT(Error("cuda_graph_scope: CUDA_GRAPH_SCOPE_UNSPECIFIED"),
              HasSubstr("training.cuda_graph_scope[0] is 0, expected one of "
                        "CUDA_GRAPH_ATTN, CUDA_GRAPH_MLP"));
  EXPECT_THAT(Error("cuda_graph_scope: CUDA_GRAPH_MOE_PREPROCESS"),
              HasSubstr("training.cuda_graph_scope has moe_preprocess, which "
                        "requires moe_router"));
  EXPECT_THAT(Error("cuda_graph_scope: [CUDA_GRAPH_FULL_ITERATION, "
                    "CUDA_GRAPH_ATTN]"),
              HasSubstr("has full_iteration and other parts"));
  EXPECT_THAT(Error("cuda_graph_scope: [CUDA_GRAPH_MOE, "
                    "CUDA_GRAPH_MOE_ROUTER]"),
              HasSubstr("has moe and moe_router, expected one of them"));
  EXPECT_THAT(Error("cuda_graph_scope: CUDA_GRAPH_MAMBA"),
              HasSubstr("has mamba, expected others: the model has no Mamba-2 "
                        "layers"));
  EXPECT_THAT(Error("cuda_graph_scope: [CUDA_GRAPH_ATTN, CUDA_GRAPH_ATTN]"),
              HasSubstr("has a part twice"));
  EXPECT_THAT(Error("cuda_graph_scope: CUDA_GRAPH_ATTN "
                    "recompute: RECOMPUTE_FULL"),
              HasSubstr("has parts of blocks with full recomputation"));
  EXPECT_THAT(Error("cuda_graph_scope: CUDA_GRAPH_ATTN "
                    "cpu_offloading_num_layers: 1"),
              HasSubstr("is given with training.cpu_offloading_num_layers"));
  EXPECT_THAT(Error("cuda_graph_scope: CUDA_GRAPH_MOE_ROUTER "
                    "recompute: RECOMPUTE_SELECTIVE recompute_modules: MOE"),
              HasSubstr("has moe_router, whose module moe is recomputed"));
  EXPECT_THAT(Error("cuda_graph_scope: CUDA_GRAPH_MOE"),
              HasSubstr("has moe, which requires experts with a capacity"));
  EXPECT_EQ(Error("cuda_graph_scope: CUDA_GRAPH_MOE "
                  "moe_expert_capacity_factor: 1"),
            "");
  EXPECT_THAT(Error("cuda_graph_scope: CUDA_GRAPH_MLP"),
              HasSubstr("the model has no dense feed-forward layers"));
}

TEST(CudaGraphsTest, ADenseModelHasNoRouter) {
  Scenario dense;
  ASSERT_TRUE(ParseTextProto("test",
                             R"(model: "llama-3.1-8b" cluster: "dgx-h100"
                                num_nodes: 1
                                batch { global_batch_size: 8 }
                                training { moe_router_fusion: true })",
                             &dense)
                  .ok());
  EXPECT_THAT(
      std::string(scenarios::ResolveScenario("test", dense).status().message()),
      HasSubstr("training.moe_router_fusion is true, expected a model with "
                "experts"));
}

}  // namespace weir::sim::cuda_graphs_test
