// SPDX-License-Identifier: Apache-2.0
#include "scenarios/default_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/assets.h"
#include "tests/scenarios/small_scenarios.h"

namespace weir::scenarios {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Scenario Llama() {
  return Parse(R"(
    model: "llama-2-7b" cluster: "dgx-a100" num_nodes: 1
    parallelism { pipeline: 2 data: 2 tensor: 2 }
    batch { global_batch_size: 8 }
    schedule: "1f1b")");
}

ResolvedScenario Resolved(const Scenario& scenario) {
  const auto resolved = ResolveScenario("s", scenario);
  EXPECT_TRUE(resolved.ok()) << resolved.status();
  return resolved.ok() ? *resolved : ResolvedScenario();
}

TEST(DefaultSetTest, CurrentModelsAreTrainedAsInCurrentRecipes) {
  const ResolvedScenario resolved = Resolved(Llama());
  EXPECT_EQ(resolved.used_defaults.set, "modern");
  EXPECT_THAT(
      resolved.used_defaults.used,
      ElementsAre("bf16", "fused attention", "sequence parallelism",
                  "distributed optimizer", "overlapped gradient reduction",
                  "runtime megatron-lm", "fp32 gradients"));
  EXPECT_THAT(resolved.used_defaults.not_used, IsEmpty());
  const Training& training = resolved.scenario.training();
  EXPECT_EQ(training.precision(), MIXED_BF16);
  EXPECT_TRUE(training.flash_attention());
  EXPECT_TRUE(training.distributed_optimizer());
  EXPECT_TRUE(training.fp32_gradients());
  EXPECT_TRUE(resolved.scenario.parallelism().sequence_parallel());
  EXPECT_EQ(resolved.scenario.communication().gradient_reduction(),
            REDUCTION_OVERLAPPED);
}

TEST(DefaultSetTest, OlderModelsAreTrainedAsIn2021) {
  const ResolvedScenario resolved = Resolved(Small());
  EXPECT_EQ(resolved.used_defaults.set, "megatron-2021");
  EXPECT_THAT(
      resolved.used_defaults.used,
      ElementsAre("fp16", "unfused attention", "no distributed optimizer",
                  "blocking gradient reduction", "runtime megatron-lm"));
}

TEST(DefaultSetTest, AScenarioMayNameAnotherSet) {
  Scenario scenario = Llama();
  scenario.set_defaults("textbook");
  const ResolvedScenario resolved = Resolved(scenario);
  EXPECT_EQ(resolved.scenario.runtime(), "none");
  EXPECT_EQ(resolved.scenario.training().precision(), MIXED_FP16);
  EXPECT_FALSE(resolved.scenario.parallelism().sequence_parallel());
  scenario.set_defaults("modrn");
  EXPECT_THAT(ResolveScenario("s", scenario).status().message(),
              HasSubstr("did you mean modern?"));
}

TEST(DefaultSetTest, GivenValuesTakePrecedence) {
  Scenario scenario = Llama();
  scenario.mutable_training()->set_precision(MIXED_FP16);
  scenario.mutable_training()->set_flash_attention(false);
  scenario.mutable_training()->set_distributed_optimizer(false);
  scenario.mutable_parallelism()->set_sequence_parallel(false);
  scenario.mutable_communication()->set_gradient_reduction(REDUCTION_BLOCKING);
  scenario.set_runtime("none");
  const ResolvedScenario resolved = Resolved(scenario);
  EXPECT_THAT(resolved.used_defaults.used, IsEmpty());
  EXPECT_FALSE(resolved.scenario.training().flash_attention());
  EXPECT_FALSE(resolved.scenario.training().distributed_optimizer());
  EXPECT_FALSE(resolved.scenario.parallelism().sequence_parallel());
  EXPECT_EQ(resolved.scenario.communication().gradient_reduction(),
            REDUCTION_BLOCKING);
}

TEST(DefaultSetTest, AScheduleWithoutAFlushHasNoDistributedOptimizer) {
  Scenario scenario = Llama();
  scenario.set_schedule("pipedream-2bw");
  const ResolvedScenario resolved = Resolved(scenario);
  EXPECT_FALSE(resolved.scenario.training().has_distributed_optimizer());
  EXPECT_THAT(
      resolved.used_defaults.not_used,
      ElementsAre("distributed optimizer (pipedream-2bw has no flush)"));
  // One that the user asks for is an error.
  scenario.mutable_training()->set_distributed_optimizer(true);
  EXPECT_THAT(ResolveScenario("s", scenario).status().message(),
              HasSubstr("pipedream-2bw"));
}

TEST(DefaultSetTest, WhatASingleGpuCannotUseStaysAbsent) {
  Scenario scenario = Llama();
  scenario.mutable_parallelism()->set_tensor(1);
  scenario.mutable_parallelism()->set_data(1);
  const ResolvedScenario resolved = Resolved(scenario);
  EXPECT_FALSE(resolved.scenario.training().has_distributed_optimizer());
  EXPECT_FALSE(resolved.scenario.parallelism().has_sequence_parallel());
  // A scenario derived from it gets its own.
  Scenario wider = resolved.scenario;
  wider.mutable_parallelism()->set_tensor(2);
  wider.mutable_parallelism()->set_data(2);
  ResolvedScenario again = resolved;
  ASSERT_TRUE(ResolveAgain(wider, &again).ok());
  EXPECT_TRUE(again.scenario.training().distributed_optimizer());
  EXPECT_TRUE(again.scenario.parallelism().sequence_parallel());
}

TEST(DefaultSetTest, SequencesMustDivide) {
  Scenario scenario = Llama();
  scenario.mutable_batch()->set_sequence_length(4095);
  const ResolvedScenario resolved = Resolved(scenario);
  EXPECT_THAT(resolved.used_defaults.not_used,
              ElementsAre("sequence parallelism (2 tensor-parallel ranks do "
                          "not divide 4095 tokens)"));
}

TEST(DefaultSetTest, ADeviceWithoutBf16TrainsInFp16) {
  Scenario scenario = Llama();
  scenario.set_cluster("p3-16xlarge");
  const ResolvedScenario resolved = Resolved(scenario);
  EXPECT_EQ(resolved.scenario.training().precision(), MIXED_FP16);
  EXPECT_FALSE(resolved.scenario.training().flash_attention());
  EXPECT_THAT(resolved.used_defaults.used, Contains("fp16"));
  EXPECT_THAT(resolved.used_defaults.used, Not(Contains("fp32 gradients")));
  EXPECT_THAT(
      resolved.used_defaults.not_used,
      ElementsAre("bf16 (V100-SXM2-16GB does not have it)", "fused attention"));
  // One that the user asks for is an error.
  scenario.mutable_training()->set_precision(MIXED_BF16);
  EXPECT_THAT(MessageOf(scenario), HasSubstr("no peak rate for bf16"));
}

TEST(DefaultSetTest, FullShardingIncludesTheOptimizer) {
  Scenario scenario = Llama();
  scenario.mutable_training()->set_fully_sharded(true);
  EXPECT_FALSE(Resolved(scenario).scenario.training().distributed_optimizer());
}

TEST(DefaultSetTest, EveryPresetLoadsAndDescribesItself) {
  const std::vector<std::string> names = ListAssets("scenarios/defaults");
  EXPECT_THAT(names, ElementsAre("megatron-2021", "modern", "textbook"));
  for (const std::string& name : names) {
    const auto set = LoadDefaultSet(name);
    ASSERT_TRUE(set.ok()) << set.status();
    EXPECT_EQ(set->name(), name);
    EXPECT_FALSE(set->description().empty());
  }
}

TEST(DefaultSetTest, PresetsOfScenariosStateWhatTheyUse) {
  for (const std::string& name : ListAssets("scenarios/presets")) {
    Scenario scenario = *LoadScenario(name);
    if (name == "replay-gpu") scenario.set_profile("a100-sxm-40gb");
    EXPECT_THAT(Resolved(scenario).used_defaults.used, IsEmpty()) << name;
  }
}

}  // namespace weir::scenarios
