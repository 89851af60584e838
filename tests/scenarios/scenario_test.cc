// SPDX-License-Identifier: Apache-2.0
#include "scenarios/scenario.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/assets.h"
#include "base/files.h"
#include "base/textproto.h"
#include "scenarios/cluster.h"

namespace weir {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Scenario Parse(const std::string& text) {
  Scenario scenario;
  const absl::Status status = ParseTextProto("test", text, &scenario);
  EXPECT_TRUE(status.ok()) << status;
  return scenario;
}

std::string MessageOf(const Scenario& scenario) {
  const auto resolved = ResolveScenario("s", scenario);
  EXPECT_EQ(resolved.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(resolved.status().message());
}

std::vector<std::string> ProblemsOf(const Scenario& scenario) {
  return absl::StrSplit(MessageOf(scenario), '\n');
}

Scenario Small() {
  return Parse(R"(
    model: "gpt2" cluster: "dgx-a100" num_nodes: 1
    parallelism { pipeline: 4 data: 2 }
    batch { microbatch_size: 2 global_batch_size: 32 }
    schedule: "1f1b")");
}

Scenario Textbook() {
  return Parse(R"(
    parallelism { pipeline: 4 } schedule: "1f1b" num_microbatches: 8
    textbook { stages { forward_seconds: 1 backward_seconds: 2 } })");
}

TEST(ScenarioTest, DefaultsAreFilledIn) {
  const auto resolved = ResolveScenario("s", Small());
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_EQ(resolved->label, "s");
  EXPECT_FALSE(resolved->textbook);
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
                   recompute: RECOMPUTE_NONE stash_bytes_per_parameter: 4 }
        communication { transfers: OVERLAPPED
                        gradient_reduction: REDUCTION_BLOCKING }
        runtime: "megatron-lm")")))
      << PrintTextProto(resolved->scenario);
}

TEST(ScenarioTest, EveryPresetResolvesAndIsNamedAsItsFile) {
  const std::vector<std::string> names = ListAssets("scenarios");
  ASSERT_GE(names.size(), 6u);
  for (const std::string& name : names) {
    const auto scenario = LoadScenario(name);
    ASSERT_TRUE(scenario.ok()) << scenario.status();
    EXPECT_EQ(scenario->name(), name);
    const auto resolved = ResolveScenario(name, *scenario);
    EXPECT_TRUE(resolved.ok()) << resolved.status();
  }
}

TEST(ScenarioTest, WhatIsResolvedResolvesToItself) {
  std::vector<Scenario> scenarios = {Small(), Textbook()};
  for (const std::string& name : ListAssets("scenarios"))
    scenarios.push_back(*LoadScenario(name));
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

TEST(ScenarioTest, TextbookNeedsNoModel) {
  const auto resolved = ResolveScenario("s", Textbook());
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_TRUE(resolved->textbook);
  EXPECT_EQ(resolved->num_microbatches, 8);
  EXPECT_THAT(resolved->placement.gpus, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(resolved->scenario.parallelism().chunks(), 1u);
}

TEST(ScenarioTest, TextbookRefusesWhatItReplaces) {
  Scenario scenario = Textbook();
  scenario.MergeFrom(Small());
  const std::string message = MessageOf(scenario);
  for (const char* field :
       {"model", "cluster", "num_nodes", "batch", "parallelism.data"}) {
    EXPECT_THAT(message, HasSubstr(absl::StrCat("s: ", field,
                                                " is given with textbook")));
  }
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
  // Filled in, and kept for whoever runs the scenario again.
  EXPECT_EQ(resolved->model.transformer().feed_forward_size(), 3072u);
  EXPECT_EQ(resolved->scenario.transformer().feed_forward_size(), 3072u);

  scenario.set_model("gpt2");
  EXPECT_THAT(ProblemsOf(scenario),
              ElementsAre("s: transformer is given with model, expected one of "
                          "them"));
  scenario.clear_model();
  transformer.set_num_heads(0);
  EXPECT_THAT(MessageOf(scenario), HasSubstr("transformer.num_heads is 0"));
}

TEST(ScenarioTest, TextbookNeedsItsNumbers) {
  Scenario scenario;
  scenario.mutable_textbook();
  EXPECT_THAT(
      ProblemsOf(scenario),
      ElementsAre("s: schedule is empty, expected a schedule's name",
                  "s: parallelism.pipeline is 0, expected the number of ranks",
                  "s: num_microbatches is 0, expected at least 1",
                  "s: textbook.stages is empty, expected one entry, or one per "
                  "stage"));
}

TEST(ScenarioTest, TextbookStagesAreOneOrAll) {
  Scenario scenario = Textbook();
  const auto stage = scenario.textbook().stages(0);
  for (int i = 1; i < 8; ++i)
    *scenario.mutable_textbook()->add_stages() = stage;
  EXPECT_THAT(ProblemsOf(scenario),
              ElementsAre("s: textbook.stages has 8 entries, expected 1 or "
                          "pipeline 4 x chunks 1 = 4"));
  scenario.mutable_parallelism()->set_chunks(2);
  scenario.set_schedule("interleaved-1f1b");
  EXPECT_TRUE(ResolveScenario("s", scenario).ok());
}

TEST(ScenarioTest, EmptyScenarioNamesAllThatIsMissing) {
  EXPECT_THAT(
      ProblemsOf(Scenario()),
      ElementsAre(
          "s: schedule is empty, expected a schedule's name",
          "s: model is empty, expected a preset or a file (or transformer)",
          "s: cluster is empty, expected a preset or a file",
          "s: batch.global_batch_size is 0, expected 1 to "
          "1073741824"));
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

TEST(ScenarioTest, ProblemsOfAllSourcesComeTogether) {
  Scenario scenario = Small();
  scenario.set_model("gpt9");
  scenario.set_cluster("dgx-9");
  scenario.set_profile("a9");
  scenario.mutable_batch()->set_global_batch_size(33);
  EXPECT_THAT(
      ProblemsOf(scenario),
      ElementsAre("s: batch.global_batch_size is 33, expected a multiple of "
                  "microbatch_size 2 x data 2 = 4",
                  StartsWith("s: model gpt9: no such file"),
                  StartsWith("s: cluster dgx-9: no such file"),
                  StartsWith("s: profile a9: no such file")));
}

TEST(ScenarioTest, OneMissingNameIsNotFound) {
  Scenario scenario = Small();
  scenario.set_model("gpt9");
  EXPECT_EQ(ResolveScenario("s", scenario).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(ScenarioTest, ClusterThatIsTooSmallIsCounted) {
  Scenario scenario = Small();
  scenario.mutable_parallelism()->set_data(4);
  EXPECT_THAT(ProblemsOf(scenario),
              ElementsAre("s: parallelism: tensor 1 x data 4 x pipeline 4 "
                          "needs 16 GPUs, but there are 8"));
}

TEST(ScenarioTest, TensorMustDivideTheModel) {
  Scenario scenario = Small();
  scenario.mutable_parallelism()->set_tensor(5);
  scenario.mutable_parallelism()->clear_pipeline();
  scenario.mutable_parallelism()->clear_data();
  EXPECT_THAT(ProblemsOf(scenario),
              ElementsAre("s: parallelism.tensor is 5, expected a divisor of "
                          "the model's 12 heads",
                          HasSubstr("12 key-value heads"),
                          HasSubstr("768 hidden units"),
                          HasSubstr("3072 feed-forward units")));
}

TEST(ScenarioTest, KeyValueHeadsMayBeCopied) {
  Scenario scenario = Small();
  scenario.set_model("llama-2-70b");  // 64 heads, 8 key-value heads
  scenario.set_num_nodes(2);
  scenario.mutable_parallelism()->Clear();
  scenario.mutable_parallelism()->set_tensor(16);
  const auto resolved = ResolveScenario("s", scenario);
  EXPECT_TRUE(resolved.ok()) << resolved.status();
}

TEST(ScenarioTest, SequencesBeyondTheLearnedPositionsAreRefused) {
  Scenario scenario = Small();
  scenario.mutable_batch()->set_sequence_length(1025);
  EXPECT_THAT(ProblemsOf(scenario),
              ElementsAre("s: batch.sequence_length is 1025, expected at most "
                          "the model's 1024 positions"));
  scenario.set_model("llama-2-7b");  // rotary
  scenario.mutable_batch()->set_sequence_length(8192);
  EXPECT_TRUE(ResolveScenario("s", scenario).ok());
}

TEST(ScenarioTest, SequenceParallelMustDivideTheSequence) {
  Scenario scenario = Small();
  scenario.mutable_parallelism()->set_tensor(2);
  scenario.mutable_parallelism()->set_data(1);
  scenario.mutable_parallelism()->set_sequence_parallel(true);
  scenario.mutable_batch()->set_sequence_length(1023);
  EXPECT_THAT(ProblemsOf(scenario),
              ElementsAre("s: parallelism.sequence_parallel cannot split "
                          "sequences of 1023 tokens over tensor 2"));
}

TEST(ScenarioTest, ExpertsAreSharedOutOverReplicas) {
  Scenario scenario = Small();
  scenario.mutable_parallelism()->set_data(2);
  scenario.mutable_parallelism()->set_expert(3);
  EXPECT_THAT(ProblemsOf(scenario),
              ElementsAre("s: parallelism.expert is 3, expected a divisor of "
                          "parallelism.data (2): experts are shared out over "
                          "replicas"));
  scenario.mutable_parallelism()->set_expert(2);
  EXPECT_THAT(ProblemsOf(scenario),
              ElementsAre("s: parallelism.expert is 2, expected 1: the model "
                          "has no experts"));
}

TEST(ScenarioTest, ShardsOfStatesNeedAFlush) {
  Scenario scenario = Small();
  scenario.set_schedule("pipedream");
  scenario.mutable_training()->set_distributed_optimizer(true);
  EXPECT_THAT(ProblemsOf(scenario),
              ElementsAre("s: training.distributed_optimizer is given with "
                          "schedule pipedream, expected one with a flush"));
  scenario.set_schedule("1f1b");
  EXPECT_TRUE(ResolveScenario("s", scenario).ok());
}

TEST(ScenarioTest, OneKindOfSharding) {
  Scenario scenario = Small();
  scenario.mutable_training()->set_fully_sharded(true);
  EXPECT_TRUE(ResolveScenario("s", scenario).ok());
  scenario.mutable_training()->set_distributed_optimizer(true);
  EXPECT_THAT(
      ProblemsOf(scenario),
      ElementsAre("s: training.distributed_optimizer is given with "
                  "fully_sharded, which includes it, expected one of them"));
  scenario.mutable_training()->set_distributed_optimizer(false);
  scenario.set_model("mixtral-8x7b");
  scenario.mutable_parallelism()->set_expert(2);
  EXPECT_THAT(ProblemsOf(scenario),
              ElementsAre("s: training.fully_sharded is given with "
                          "parallelism.expert, expected one of them: sharding "
                          "of shared experts is not simulated"));
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
  Scenario textbook = Textbook();
  textbook.set_runtime("none");
  EXPECT_THAT(ProblemsOf(textbook),
              ElementsAre(HasSubstr("runtime is given with textbook")));
}

TEST(ScenarioTest, BucketsHaveASize) {
  Scenario scenario = Small();
  scenario.mutable_communication()->set_bucket_bytes(-1);
  EXPECT_THAT(ProblemsOf(scenario),
              ElementsAre(HasSubstr("communication.bucket_bytes is -1")));
}

TEST(ScenarioTest, PrecisionMustBeTheDevices) {
  Scenario scenario = Small();
  scenario.set_profile("v100-sxm2-16gb");
  scenario.mutable_training()->set_precision(MIXED_BF16);
  EXPECT_THAT(ProblemsOf(scenario),
              ElementsAre("s: training.precision is MIXED_BF16, but device "
                          "V100-SXM2-16GB has no matrix rate for bf16"));
  scenario.mutable_training()->set_precision(FP32);
  EXPECT_TRUE(ResolveScenario("s", scenario).ok());
}

TEST(ScenarioTest, BlocksPerStageMustFitStagesAndModel) {
  Scenario scenario = Small();
  for (const int blocks : {3, 3, 0})
    scenario.mutable_parallelism()->add_blocks_per_stage(blocks);
  EXPECT_THAT(
      ProblemsOf(scenario),
      ElementsAre("s: parallelism.blocks_per_stage[2] is 0, expected 1 to "
                  "1000000",
                  "s: parallelism.blocks_per_stage has 3 entries, expected "
                  "pipeline 4 x chunks 1 = 4"));
  scenario.mutable_parallelism()->set_blocks_per_stage(2, 3);
  scenario.mutable_parallelism()->add_blocks_per_stage(2);
  EXPECT_THAT(ProblemsOf(scenario),
              ElementsAre("s: parallelism.blocks_per_stage adds up to 11 "
                          "blocks, expected the model's 12"));
  scenario.mutable_parallelism()->set_blocks_per_stage(3, 3);
  EXPECT_TRUE(ResolveScenario("s", scenario).ok());
}

TEST(ScenarioTest, PlacementIsInOrderOrGiven) {
  Scenario scenario = Small();
  scenario.mutable_parallelism()->set_order("pp-first");
  EXPECT_THAT(MessageOf(scenario), HasSubstr("order is \"pp-first\""));
  scenario.mutable_parallelism()->set_order("tp-pp-dp");
  scenario.mutable_parallelism()->add_gpus(0);
  EXPECT_THAT(MessageOf(scenario),
              HasSubstr("parallelism.gpus is given with order"));
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

TEST(ScenarioTest, AbsurdNumbersAreRefusedBeforeMemoryIsTaken) {
  Scenario scenario = Parse(R"(
    model: "gpt2" cluster: "dgx-a100" num_nodes: 4000000000 schedule: "1f1b"
    parallelism { tensor: 4000000000 data: 4000000000 pipeline: 4000000000
                  chunks: 4000000000 gpus: 4000000000 }
    batch { microbatch_size: 4000000000 global_batch_size: 4000000000
            sequence_length: 4000000000 }
    num_batches: 4000000000
    training { stash_bytes_per_parameter: inf })");
  const std::string message = MessageOf(scenario);
  for (const char* field :
       {"num_nodes", "parallelism.tensor", "parallelism.data",
        "parallelism.pipeline", "parallelism.chunks", "parallelism.gpus[0]",
        "batch.microbatch_size", "batch.global_batch_size",
        "batch.sequence_length", "num_batches"}) {
    EXPECT_THAT(message, HasSubstr(absl::StrCat("s: ", field,
                                                " is 4000000000, expected")));
  }
  EXPECT_THAT(message, HasSubstr("stash_bytes_per_parameter is inf"));
}

TEST(ScenarioTest, AnUnknownScheduleIsToldWithBadFields) {
  Scenario scenario = Small();
  scenario.set_schedule("nonesuch");
  scenario.mutable_parallelism()->set_order("x");
  EXPECT_THAT(ProblemsOf(scenario),
              ElementsAre(StartsWith("s: parallelism.order is \"x\""),
                          StartsWith("s: schedule 'nonesuch' is unknown")));
}

TEST(ScenarioTest, NamesThatAreNoUtf8AreRefused) {
  Scenario scenario = Small();
  scenario.set_profile("a\xff");
  EXPECT_THAT(ProblemsOf(scenario),
              testing::Contains("s: profile is \"a\\xff\", expected UTF-8"));
}

TEST(ScenarioTest, TooManyActionsAreCounted) {
  Scenario scenario = Textbook();
  scenario.mutable_parallelism()->set_pipeline(1000);
  scenario.set_num_microbatches(1000000);
  EXPECT_THAT(
      ProblemsOf(scenario),
      ElementsAre("s: needs 2e+09 actions (2 x 1000 GPUs x 1 chunks x "
                  "1000000 microbatches x 1 batches), about 298 GiB and "
                  "1.11 hours, expected at most 2e+08"));
  scenario.set_num_microbatches(100000);
  EXPECT_TRUE(ResolveScenario("s", scenario).ok());
}

TEST(ScenarioTest, MicrobatchesAreNotGivenWithAModel) {
  Scenario scenario = Small();
  scenario.set_num_microbatches(8);
  EXPECT_THAT(ProblemsOf(scenario),
              ElementsAre(HasSubstr("num_microbatches is given without "
                                    "textbook")));
}

TEST(ScenarioTest, UnknownEnumNumbersAreRefused) {
  EXPECT_THAT(MessageOf(Parse(R"(
        training { precision: 17 optimizer: 18 recompute: 19 }
        communication { transfers: 20 gradient_reduction: 21 })")),
              AllOf(HasSubstr("training.precision is 17"),
                    HasSubstr("training.optimizer is 18"),
                    HasSubstr("training.recompute is 19"),
                    HasSubstr("communication.transfers is 20"),
                    HasSubstr("communication.gradient_reduction is 21")));
}

class ScenarioFileTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = absl::StrCat(::testing::TempDir(), getpid(), name);
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
  // One name stands for all.
  scenario.set_profile("h100-sxm");
  const auto alike = ResolveScenario("s", scenario);
  ASSERT_TRUE(alike.ok()) << alike.status();
  EXPECT_EQ(alike->device.name(), "H100-SXM5-80GB");
  EXPECT_THAT(alike->other_devices, testing::IsEmpty());
  EXPECT_THAT(alike->gpu_device, testing::IsEmpty());
}

TEST_F(ScenarioFileTest, ClusterProblemsComeWithTheScenarios) {
  Scenario scenario = Small();
  scenario.set_schedule("");
  const std::string path = Write("bad.textproto", "groups { count: 1 }");
  scenario.set_cluster(path);
  const std::string message = MessageOf(scenario);
  EXPECT_THAT(message, HasSubstr("s: schedule is empty"));
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
              ElementsAre("s: parallelism asks for 4 stages (pipeline x "
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
              ElementsAre(HasSubstr("parallelism.tensor is given, but the "
                                    "model is measured"),
                          HasSubstr("batch.sequence_length is given"),
                          HasSubstr("training.dropout is given"),
                          HasSubstr("training.recompute is RECOMPUTE_SELECTIVE,"
                                    " expected none or full")));
}

TEST_F(ScenarioFileTest, SyntaxErrorsNameTheirPlace) {
  const std::string path = Write("broken.textproto", "model: 3\nx: 1\n");
  const absl::Status status = LoadScenario(path).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(absl::StrCat(path, ":1:")));
}

// Megatron-LM's main gradients are fp32 with bf16, unless
// --grad-reduce-in-bf16.
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
  // A scenario that is resolved again has the same.
  auto resolved = ResolveScenario("s", Small());
  Scenario scenario = Small();
  scenario.mutable_training()->set_precision(MIXED_BF16);
  ASSERT_TRUE(ResolveAgain(scenario, &*resolved).ok());
  EXPECT_TRUE(resolved->scenario.training().fp32_gradients());
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

}  // namespace
}  // namespace weir
