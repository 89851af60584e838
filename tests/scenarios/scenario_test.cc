// SPDX-License-Identifier: Apache-2.0
#include "scenarios/scenario.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "base/assets.h"
#include "base/files.h"
#include "base/textproto.h"
#include "scenarios/cluster/cluster.h"
#include "tests/scenarios/small_scenarios.h"

namespace weir::scenarios::scenario_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ScenarioTest, DefaultsAreFilledIn) {
  const auto resolved = ResolveScenario("s", Small());
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_EQ(resolved->label, "s");
  EXPECT_FALSE(resolved->given_costs);
  EXPECT_EQ(resolved->num_microbatches, 8);
  EXPECT_EQ(resolved->model.name(), "gpt2");
  EXPECT_EQ(NumGpus(resolved->cluster), 8);
  EXPECT_EQ(resolved->device.name(), "A100-SXM4-80GB");
  EXPECT_EQ(resolved->placement.gpu(1, 2, 0), 5);
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(
      resolved->scenario, Parse(R"(
        model: "gpt2" cluster: "dgx-a100" num_nodes: 1 profile: "a100-sxm-80gb"
        parallelism { tensor: 1 data: 2 pipeline: 4 chunks: 1
                      order: "tp-dp-pp" expert: 1 }
        batch { microbatch_size: 2 global_batch_size: 32
                sequence_length: 1024 }
        schedule: "1f1b"
        training { precision: MIXED_FP16 optimizer: ADAM
                   recompute: RECOMPUTE_NONE stash_bytes_per_parameter: 4
                   flash_attention: false distributed_optimizer: false }
        communication { transfers: OVERLAPPED
                        gradient_reduction: REDUCTION_BLOCKING }
        runtime: "megatron-lm" defaults: "megatron-2021")")))
      << PrintTextProto(resolved->scenario);
}

// Returns the preset, with a profile if it is for a GPU of any kind.
Scenario PresetOfSomeGpu(const std::string& name) {
  Scenario scenario = *LoadScenario(name);
  if (name == "replay-gpu") scenario.set_profile("a100-sxm-40gb");
  return scenario;
}

TEST(ScenarioTest, EveryPresetResolvesAndIsNamedAsItsFile) {
  const std::vector<std::string> names = ListAssets("scenarios/presets");
  ASSERT_GE(names.size(), 6u);
  for (const std::string& name : names) {
    const auto scenario = LoadScenario(name);
    ASSERT_TRUE(scenario.ok()) << scenario.status();
    EXPECT_EQ(scenario->name(), name);
    const auto resolved = ResolveScenario(name, PresetOfSomeGpu(name));
    EXPECT_TRUE(resolved.ok()) << resolved.status();
  }
}

TEST(ScenarioTest, APresetOfAnyGpuNeedsAProfile) {
  const auto resolved = ResolveScenario("s", *LoadScenario("replay-gpu"));
  EXPECT_EQ(resolved.status().message(),
            "s: profile is empty, expected a device profile, because the "
            "cluster one-gpu names no GPU (--profile; weir profile list)");
}

TEST(ScenarioTest, WhatIsResolvedResolvesToItself) {
  std::vector<Scenario> scenarios = {Small(), GivenCostsScenario()};
  for (const std::string& name : ListAssets("scenarios/presets"))
    scenarios.push_back(PresetOfSomeGpu(name));
  for (const Scenario& scenario : scenarios) {
    const auto once = ResolveScenario("s", scenario);
    ASSERT_TRUE(once.ok()) << once.status();
    const auto twice = ResolveScenario("s", once->scenario);
    ASSERT_TRUE(twice.ok()) << twice.status();
    EXPECT_EQ(PrintTextProto(once->scenario), PrintTextProto(twice->scenario));
  }
}

TEST(ScenarioTest, TwoBufferedWeightsKeepReplicasInOneServer) {
  const auto resolved =
      ResolveScenario("s", *LoadScenario("pipedream-2bw-gpt-2.2b"));
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_EQ(resolved->num_microbatches, 8);
  for (int rank = 0; rank < 8; ++rank) {
    for (int replica = 0; replica < 8; ++replica)
      EXPECT_EQ(resolved->placement.gpu(replica, rank, 0) / 8, rank);
  }
}

TEST(ScenarioTest, GivenCostsNeedNoModel) {
  const auto resolved = ResolveScenario("s", GivenCostsScenario());
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_TRUE(resolved->given_costs);
  EXPECT_EQ(resolved->num_microbatches, 8);
  EXPECT_THAT(resolved->placement.gpus, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(resolved->scenario.parallelism().chunks(), 1u);
}

TEST(ScenarioTest, ATransformerStandsInPlaceOfAModel) {
  Scenario scenario = Small();
  scenario.clear_model();
  Transformer& transformer = *scenario.mutable_transformer();
  transformer.set_num_layers(12);
  transformer.set_hidden_size(768);
  transformer.set_num_heads(12);
  transformer.set_vocabulary_size(50257);
  const auto resolved = ResolveScenario("s", scenario);
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_EQ(resolved->model.transformer().num_layers(), 12u);
  // Defaults are filled in and kept, so that the scenario can be run again.
  EXPECT_EQ(resolved->model.transformer().feed_forward_size(), 3072u);
  EXPECT_EQ(resolved->scenario.transformer().feed_forward_size(), 3072u);

  scenario.set_model("gpt2");
  EXPECT_THAT(ProblemsOf(scenario),
              ElementsAre("s: transformer cannot be combined with model"));
  scenario.clear_model();
  transformer.set_num_heads(0);
  EXPECT_THAT(MessageOf(scenario), HasSubstr("transformer.num_heads is 0"));
}

TEST(ScenarioTest, MicrobatchesOfOneSequenceAreTheDefault) {
  Scenario scenario = Small();
  scenario.mutable_batch()->set_microbatch_size(1);
  const auto given = ResolveScenario("s", scenario);
  ASSERT_TRUE(given.ok()) << given.status();
  scenario.mutable_batch()->clear_microbatch_size();
  const auto resolved = ResolveScenario("s", scenario);
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_EQ(resolved->scenario.batch().microbatch_size(), 1);
  EXPECT_EQ(resolved->num_microbatches, given->num_microbatches);
}

TEST(ScenarioTest, ExpertsAreSharedOutOverReplicas) {
  Scenario scenario = Small();
  scenario.mutable_parallelism()->set_data(2);
  scenario.mutable_parallelism()->set_expert(3);
  EXPECT_THAT(
      ProblemsOf(scenario),
      ElementsAre(
          "s: parallelism.expert is 3, expected a divisor of parallelism.data "
          "(2): experts are distributed over data-parallel ranks"));
  scenario.mutable_parallelism()->set_expert(2);
  EXPECT_THAT(ProblemsOf(scenario),
              ElementsAre("s: parallelism.expert is 2, expected 1: the model "
                          "has no experts"));
}

TEST(ScenarioTest, RuntimesAreFoundByName) {
  Scenario scenario = Small();
  scenario.set_runtime("megatron");
  EXPECT_THAT(ResolveScenario("s", scenario).status().message(),
              HasSubstr("runtime"));
  EXPECT_EQ(ResolveScenario("s", scenario).status().code(),
            absl::StatusCode::kNotFound);
  scenario.set_runtime("none");
  EXPECT_EQ(ResolveScenario("s", scenario)->runtime.name(), "none");
  EXPECT_EQ(ResolveScenario("s", Small())->runtime.name(), "megatron-lm");
  Scenario given = GivenCostsScenario();
  given.set_runtime("none");
  EXPECT_THAT(ProblemsOf(given),
              ElementsAre(HasSubstr("runtime cannot be combined with costs")));
}

TEST(ScenarioTest, PlacementIsInOrderOrGiven) {
  Scenario scenario = Small();
  scenario.mutable_parallelism()->set_order("pp-first");
  EXPECT_THAT(MessageOf(scenario), HasSubstr("order is \"pp-first\""));
  scenario.mutable_parallelism()->set_order("tp-pp-dp");
  scenario.mutable_parallelism()->add_gpus(0);
  EXPECT_THAT(MessageOf(scenario),
              HasSubstr("parallelism.gpus cannot be combined with order"));
  scenario.mutable_parallelism()->clear_order();
  EXPECT_THAT(MessageOf(scenario), HasSubstr("gpus lists 1 GPUs"));
  scenario.mutable_parallelism()->clear_gpus();
  for (const int gpu : {7, 6, 5, 4, 3, 2, 1, 0})
    scenario.mutable_parallelism()->add_gpus(gpu);
  const auto resolved = ResolveScenario("s", scenario);
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_EQ(resolved->placement.gpu(0, 0, 0), 7);
  EXPECT_EQ(resolved->scenario.parallelism().order(), "");
}

class ScenarioFileTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) {
    std::string path = absl::StrCat(::testing::TempDir(), getpid(), name);
    EXPECT_TRUE(WriteFile(path, text).ok());
    paths_.push_back(path);
    return path;
  }

  void TearDown() override {
    for (const std::string& path : paths_) unlink(path.c_str());
  }

  std::vector<std::string> paths_;
};

TEST_F(ScenarioFileTest, UnlikeGpusHaveDevicesOfTheirOwn) {
  Scenario scenario = Small();
  scenario.clear_num_nodes();
  scenario.set_cluster(Write("mixed.textproto", R"(
    groups { count: 4 node { num_gpus: 1 device: "a100-sxm-80gb"
      nics { bytes_per_second: 1e9 } } }
    groups { count: 3 node { num_gpus: 1 device: "h100-sxm"
      nics { bytes_per_second: 1e9 } } }
    groups { count: 1 node { num_gpus: 1 device: "a100-sxm-80gb"
      nics { bytes_per_second: 1e9 } } }
    fabric { })"));
  const auto mixed = ResolveScenario("s", scenario);
  ASSERT_TRUE(mixed.ok()) << mixed.status();
  EXPECT_EQ(mixed->device.name(), "A100-SXM4-80GB");
  ASSERT_EQ(mixed->other_devices.size(), 1u);
  EXPECT_EQ(mixed->other_devices[0].name(), "H100-SXM5-80GB");
  EXPECT_THAT(mixed->gpu_device, ElementsAre(0, 0, 0, 0, 1, 1, 1, 0));
  EXPECT_EQ(mixed->scenario.profile(), "");
  // One profile name applies to all GPUs.
  scenario.set_profile("h100-sxm");
  const auto alike = ResolveScenario("s", scenario);
  ASSERT_TRUE(alike.ok()) << alike.status();
  EXPECT_EQ(alike->device.name(), "H100-SXM5-80GB");
  EXPECT_TRUE(alike->other_devices.empty());
  EXPECT_THAT(alike->gpu_device, testing::IsEmpty());
}

TEST_F(ScenarioFileTest, ClusterProblemsComeWithTheScenarios) {
  Scenario scenario = Small();
  scenario.mutable_batch()->clear_global_batch_size();
  const std::string path = Write("bad.textproto", "groups { count: 1 }");
  scenario.set_cluster(path);
  const std::string message = MessageOf(scenario);
  EXPECT_THAT(message, HasSubstr("s: batch.global_batch_size is missing"));
  EXPECT_THAT(message,
              HasSubstr(absl::StrCat(path, ": groups[0].node.num_gpus is 0")));
}

TEST_F(ScenarioFileTest, MeasuredModelRunsAsItWasMeasured) {
  Scenario scenario = Small();
  scenario.set_model(Write("measured.textproto", R"(
    name: "m" measured { microbatch_size: 4
      layers { name: "a" forward_seconds: 1 backward_seconds: 2 }
      layers { name: "b" forward_seconds: 1 backward_seconds: 2 } })"));
  EXPECT_THAT(ProblemsOf(scenario),
              ElementsAre("s: parallelism has 4 stages (pipeline x "
                          "chunks), expected at most the model's 2 layers"));
  scenario.mutable_parallelism()->set_pipeline(2);
  const auto resolved = ResolveScenario("s", scenario);
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_EQ(resolved->scenario.training().precision(), FP32);
  EXPECT_EQ(resolved->scenario.batch().sequence_length(), 0u);
  scenario.mutable_parallelism()->set_tensor(2);
  scenario.mutable_parallelism()->set_data(1);
  scenario.mutable_batch()->set_sequence_length(128);
  scenario.mutable_training()->set_dropout(true);
  scenario.mutable_training()->set_recompute(RECOMPUTE_SELECTIVE);
  EXPECT_THAT(ProblemsOf(scenario),
              ElementsAre(HasSubstr("parallelism.tensor is 2, expected at most "
                                    "1: the layers of the model were measured"),
                          HasSubstr("batch.sequence_length is 128, expected 0"),
                          HasSubstr("training.dropout is true, expected false"),
                          HasSubstr("training.recompute is selective,"
                                    " expected none or full")));
}

TEST_F(ScenarioFileTest, SyntaxErrorsNameTheirPlace) {
  const std::string path = Write("broken.textproto", "model: 3\nx: 1\n");
  const absl::Status status = LoadScenario(path).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(absl::StrCat(path, ":1:")));
}

// With bf16, Megatron-LM's main gradients are fp32 unless --grad-reduce-in-bf16
// is given.
TEST(ScenarioTest, TheRuntimeSaysHowGradientsOfBf16AreAccumulated) {
  const auto fp32_gradients = [](const std::string& rest) {
    Scenario scenario = Small();
    scenario.MergeFrom(Parse(rest));
    const auto resolved = ResolveScenario("s", scenario);
    EXPECT_TRUE(resolved.ok()) << resolved.status();
    return resolved->scenario.training().fp32_gradients();
  };
  EXPECT_TRUE(fp32_gradients("training { precision: MIXED_BF16 }"));
  EXPECT_FALSE(fp32_gradients(
      "training { precision: MIXED_BF16 fp32_gradients: false }"));
  EXPECT_FALSE(fp32_gradients("training { precision: MIXED_FP16 }"));
  EXPECT_TRUE(fp32_gradients(
      "training { precision: MIXED_FP16 fp32_gradients: true }"));
  for (const char* other : {"pytorch", "weir", "none", "megatron-deepspeed"}) {
    EXPECT_FALSE(fp32_gradients(absl::StrCat(
        "training { precision: MIXED_BF16 } runtime: '", other, "'")));
  }
  // Resolving a scenario again gives the same.
  auto resolved = ResolveScenario("s", Small());
  Scenario scenario = Small();
  scenario.mutable_training()->set_precision(MIXED_BF16);
  ASSERT_TRUE(ResolveAgain(scenario, &*resolved).ok());
  EXPECT_TRUE(resolved->scenario.training().fp32_gradients());
}

// The program calls one library of attention; a run may choose another.
TEST(ScenarioTest, TheRuntimeNamesTheLibraryOfAttention) {
  Scenario scenario = Small();
  scenario.mutable_training()->set_flash_attention(true);
  EXPECT_EQ(ResolveScenario("s", scenario)->device.attention_kernel(), CUDNN);
  scenario.set_runtime("torchtitan");
  EXPECT_EQ(ResolveScenario("s", scenario)->device.attention_kernel(),
            FLASH_ATTENTION_2);
  scenario.mutable_training()->set_attention_kernel(FLASH_ATTENTION_1);
  EXPECT_EQ(ResolveScenario("s", scenario)->device.attention_kernel(),
            FLASH_ATTENTION_1);
}

TEST(ScenarioTest, RecomputationOfOperatorsNeedsFusedAttention) {
  Scenario scenario = Small();
  scenario.mutable_training()->set_recompute(RECOMPUTE_OPERATORS);
  scenario.mutable_training()->set_flash_attention(false);
  EXPECT_THAT(ProblemsOf(scenario),
              testing::Contains(testing::HasSubstr(
                  "training.recompute is RECOMPUTE_OPERATORS with "
                  "training.flash_attention false, expected true")));
  scenario.mutable_training()->set_flash_attention(true);
  EXPECT_TRUE(ResolveScenario("s", scenario).ok());
}

TEST(ScenarioTest, WarnsOfMicrobatchesThatAScheduleIsNotDefinedFor) {
  Scenario scenario = Small();
  scenario.set_schedule("pipelined-backprop");
  auto resolved = ResolveScenario("s", scenario);
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_THAT(resolved->warnings,
              testing::Contains(HasSubstr("microbatches of one sample")));
  scenario.mutable_batch()->set_microbatch_size(1);
  resolved = ResolveScenario("s", scenario);
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_THAT(resolved->warnings, testing::IsEmpty());
}

}  // namespace weir::scenarios::scenario_test
