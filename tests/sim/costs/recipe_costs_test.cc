// SPDX-License-Identifier: Apache-2.0
// Tests of what recipes change in the costs of stages: bytes of weights, their
// copies and gathers, states of the optimizer; and that all methods agree.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/assets.h"
#include "base/textproto.h"
#include "models/recipe.h"
#include "scenarios/scenario.h"
#include "sim/bounds/bound.h"
#include "sim/costs/stage_costs.h"
#include "sim/fast/fast_simulator.h"
#include "sim/simulate.h"

namespace weir::sim::recipe_costs_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Scenario Text(const std::string& training, const std::string& rest = "") {
  Scenario scenario;
  const absl::Status status =
      ParseTextProto("test",
                     absl::StrCat(
                         R"(
        model: "llama-3.1-8b" cluster: "dgx-h100" num_nodes: 1
        parallelism { tensor: 2 pipeline: 2 data: 2 sequence_parallel: true }
        batch { microbatch_size: 1 global_batch_size: 8 sequence_length: 2048 }
        schedule: "1f1b")",
                         " training { ", training, " } ", rest),
                     &scenario);
  EXPECT_TRUE(status.ok()) << status;
  return scenario;
}

StageParameters FirstStage(const Scenario& scenario) {
  const auto resolved = scenarios::ResolveScenario("test", scenario);
  EXPECT_TRUE(resolved.ok()) << resolved.status();
  const auto costs = ComputeCosts(*resolved, 2, {1, 1});
  EXPECT_TRUE(costs.ok()) << costs.status();
  return costs->stages[0].parameters;
}

// Weights of the linear layers of 16 blocks on one of two GPUs.
constexpr double h = 4096, kv = 1024, f = 14336;
constexpr double kQuantized = 16 * (2 * h * h + 2 * h * kv + 3 * h * f) / 2;

double ParametersOf(const StageParameters& parameters) {
  return parameters.fp32_bytes / 4;
}

TEST(RecipeCostsTest, HopperKeepsTwoCopiesOfWeights) {
  const StageParameters p = FirstStage(Text("recipe: \"fp8-current\""));
  EXPECT_EQ(p.weight_bytes, 2 * ParametersOf(p));
  EXPECT_EQ(p.weight_copy_bytes, 2 * kQuantized);
  EXPECT_EQ(p.gathered_bytes(), 2 * ParametersOf(p));
  EXPECT_EQ(p.optimizer_state_bytes, 12 * ParametersOf(p));
}

TEST(RecipeCostsTest, BlackwellKeepsOneCopyOfFp8WeightsAndTwoOfMxfp8) {
  const std::string cluster = "profile: \"b200-sxm\"";
  EXPECT_EQ(
      FirstStage(Text("recipe: \"fp8-current\"", cluster)).weight_copy_bytes,
      kQuantized);
  EXPECT_EQ(FirstStage(Text("recipe: \"mxfp8\"", cluster)).weight_copy_bytes,
            66 / 32.0 * kQuantized);
}

TEST(RecipeCostsTest, QuantizedParametersReplaceWeightsAndShrinkTheGather) {
  const StageParameters p =
      FirstStage(Text("recipe: \"fp8-current\" quantized_parameters: true"));
  const double others = ParametersOf(p) - kQuantized;
  EXPECT_EQ(p.weight_bytes, 2 * others + kQuantized);
  EXPECT_EQ(p.weight_copy_bytes, kQuantized);
  EXPECT_EQ(p.gathered_bytes(), 2 * others + kQuantized);
}

TEST(RecipeCostsTest, StatesHaveTheirFormats) {
  const StageParameters p = FirstStage(Text("recipe: \"deepseek-v3\""));
  EXPECT_EQ(p.optimizer_state_bytes, (2 + 2 + 4) * ParametersOf(p));
  const StageParameters q =
      FirstStage(Text("precision: MIXED_BF16 first_moment: STATE_FP8 "
                      "second_moment: STATE_FP16 main_weights: STATE_FP16"));
  EXPECT_EQ(q.optimizer_state_bytes, (1 + 2 + 2) * ParametersOf(q));
  EXPECT_EQ(q.weight_copy_bytes, 0);
}

TEST(RecipeCostsTest, ARecipeOf16BitsIsTheSameAsThePrecision) {
  const auto named =
      Simulate(*scenarios::ResolveScenario("test", Text("recipe: \"bf16\"")));
  const auto plain = Simulate(
      *scenarios::ResolveScenario("test", Text("precision: MIXED_BF16")));
  ASSERT_TRUE(named.ok() && plain.ok());
  EXPECT_EQ(named->batch_seconds(), plain->batch_seconds());
  EXPECT_EQ(named->peak_memory_bytes(), plain->peak_memory_bytes());
}

// The fast estimate, the bound and the full simulation agree for every recipe.
TEST(RecipeCostsTest, AllMethodsAgree) {
  for (const std::string& name : ListAssets("models/recipes")) {
    SCOPED_TRACE(name);
    const auto resolved = scenarios::ResolveScenario(
        "test",
        Text(absl::StrCat("recipe: \"", name, "\" first_blocks_in_16_bits: 1"),
             "profile: \"b200-sxm\""));
    ASSERT_TRUE(resolved.ok()) << resolved.status();
    const auto full = Simulate(*resolved);
    ASSERT_TRUE(full.ok()) << full.status();
    FastSimulator fast;
    const auto estimate = fast.Estimate(*resolved);
    ASSERT_TRUE(estimate.ok()) << estimate.status();
    EXPECT_NEAR(estimate->batch_seconds / full->batch_seconds(), 1, 1e-9);
    double peak = 0;
    for (const double bytes : estimate->peak_bytes)
      peak = std::max(peak, bytes);
    EXPECT_NEAR(peak / full->peak_memory_bytes(), 1, 1e-9);
    const auto bound = BoundOf(*resolved);
    ASSERT_TRUE(bound.ok()) << bound.status();
    EXPECT_LE(bound->any_order_seconds, full->batch_seconds() * (1 + 1e-9));
  }
}

TEST(RecipeCostsTest, ADeviceWithoutTheFormatRefuses) {
  const auto resolved =
      scenarios::ResolveScenario("test", Text("recipe: \"nvfp4\""));
  EXPECT_THAT(std::string(resolved.status().message()),
              HasSubstr("training.recipe is \"nvfp4\", which needs a rate for "
                        "nvfp4, but device H100-SXM5-80GB has rates only for"));
}

TEST(RecipeCostsTest, TheErrorOfARecipeIsTheOnlyOne) {
  const auto resolved = scenarios::ResolveScenario(
      "test", Text("recipe: \"fp8-current\"", "profile: \"v100-sxm2-16gb\""));
  EXPECT_THAT(std::string(resolved.status().message()),
              AllOf(HasSubstr("needs a rate for fp8"),
                    Not(HasSubstr("training.precision"))));
}

TEST(RecipeCostsTest, OneBlockAtLeastIsQuantized) {
  const auto message = [](const char* fields) {
    return std::string(
        scenarios::ResolveScenario(
            "test", Text(absl::StrCat("recipe: \"fp8-current\" ", fields)))
            .status()
            .message());
  };
  EXPECT_EQ(message("first_blocks_in_16_bits: 31"), "");
  EXPECT_THAT(message("last_blocks_in_16_bits: 32"),
              HasSubstr("training.last_blocks_in_16_bits is 32, expected at "
                        "most 31"));
  EXPECT_THAT(message("first_blocks_in_16_bits: 20 last_blocks_in_16_bits: 20"),
              HasSubstr("= 40, expected at most 31"));
}

TEST(RecipeCostsTest, FieldsWithoutEffectAreReported) {
  const auto resolved = scenarios::ResolveScenario(
      "test", Text("precision: MIXED_BF16 first_blocks_in_16_bits: 2"));
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_THAT(resolved->warnings,
              testing::Contains(StartsWith(
                  "training.first_blocks_in_16_bits has no effect without a "
                  "recipe")));
}

TEST(RecipeCostsTest, Fp32CannotHaveARecipe) {
  const auto resolved = scenarios::ResolveScenario(
      "test", Text("precision: FP32 recipe: \"fp8-current\""));
  EXPECT_THAT(std::string(resolved.status().message()),
              HasSubstr("training.precision is FP32"));
}

}  // namespace weir::sim::recipe_costs_test
