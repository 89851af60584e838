// SPDX-License-Identifier: Apache-2.0
// Tests of the routing of tokens that a scenario sets instead of its model, and
// of the overlap of tensor-parallel collectives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "base/textproto.h"
#include "scenarios/scenario.h"
#include "sim/costs/work_spec.h"

namespace weir::sim::routing_test {

using testing::HasSubstr;

absl::StatusOr<scenarios::ResolvedScenario> Resolve(
    const std::string& more, const std::string& model = "deepseek-v3") {
  Scenario scenario;
  const absl::Status parsed = ParseTextProto(
      "test",
      absl::StrCat("model: \"", model, R"(" cluster: "dgx-h100" num_nodes: 2
                   parallelism { expert: 16 data: 16 }
                   batch { global_batch_size: 16 } )",
                   more),
      &scenario);
  EXPECT_TRUE(parsed.ok()) << parsed;
  return scenarios::ResolveScenario("test", scenario);
}

std::string Error(const std::string& training) {
  return std::string(
      Resolve(absl::StrCat("training { ", training, "}")).status().message());
}

TEST(RoutingTest, TheScenarioReplacesTheGroupsOfTheModel) {
  const auto given = [](const std::string& training) {
    const auto resolved = Resolve(absl::StrCat("training { ", training, "}"));
    EXPECT_TRUE(resolved.ok()) << resolved.status();
    return resolved.ok() ? resolved->model.transformer() : Transformer();
  };
  EXPECT_EQ(given("").num_router_groups(), 8);
  EXPECT_EQ(given("").router_groups_per_token(), 4);
  EXPECT_EQ(given("moe_router_group_topk: 2").router_groups_per_token(), 2);
  EXPECT_EQ(given("moe_router_num_groups: 16").num_router_groups(), 16);
  EXPECT_EQ(given("moe_router_num_groups: 0").router_groups_per_token(), 0);
  EXPECT_EQ(given("moe_expert_capacity_factor: 1.5").capacity_factor(), 1.5);
  EXPECT_TRUE(given("moe_expert_capacity_factor: 1.5").unpadded_capacity());
  EXPECT_FALSE(given("moe_expert_capacity_factor: 1.5 "
                     "moe_pad_expert_input_to_capacity: true")
                   .unpadded_capacity());
}

TEST(RoutingTest, RefusesWhatNoRouterDoes) {
  EXPECT_THAT(Error("moe_router_num_groups: 7"),
              HasSubstr("training.moe_router_num_groups is 7, expected a "
                        "divisor of the model's num_experts (256)"));
  EXPECT_THAT(Error("moe_router_group_topk: 9"),
              HasSubstr("training.moe_router_group_topk is 9"));
  EXPECT_THAT(Error("moe_router_num_groups: 64 moe_router_group_topk: 1"),
              HasSubstr("expected groups with at least the model's "
                        "experts_per_token (8) experts; 1 have 4"));
  EXPECT_THAT(Error("moe_pad_expert_input_to_capacity: true"),
              HasSubstr("which requires training.moe_expert_capacity_factor"));
  EXPECT_THAT(Error("moe_expert_capacity_factor: -1"),
              HasSubstr("training.moe_expert_capacity_factor is -1"));
  Scenario dense;
  EXPECT_THAT(
      std::string(
          ParseTextProto("test", R"(model: "llama-3.1-8b" cluster: "dgx-h100"
                                    num_nodes: 1
                                    batch { global_batch_size: 8 }
                                    training { moe_router_group_topk: 2 })",
                         &dense)
                  .ok()
              ? scenarios::ResolveScenario("test", dense).status().message()
              : ""),
      HasSubstr("is given, expected a model with experts"));
}

// Absent, the runtime decides: nemo has user buffers, megatron-lm does not.
TEST(TensorOverlapTest, TheScenarioReplacesTheRuntime) {
  const auto pieces = [](const std::string& runtime, const std::string& given) {
    const auto resolved = Resolve(absl::StrCat(
        "runtime: \"", runtime, "\" communication { ", given, "}"));
    EXPECT_TRUE(resolved.ok()) << resolved.status();
    return resolved.ok() && MakeWorkSpec(*resolved).tensor_pieces;
  };
  EXPECT_FALSE(pieces("megatron-lm", ""));
  EXPECT_TRUE(pieces("megatron-lm", "tp_comm_overlap: true"));
  EXPECT_TRUE(pieces("nemo", ""));
  EXPECT_FALSE(pieces("nemo", "tp_comm_overlap: false"));
}

}  // namespace weir::sim::routing_test
