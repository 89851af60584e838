// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/scenarios/small_scenarios.h"

namespace weir::scenarios::scenario_problems_test {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(ScenarioProblemsTest, GivenCostsAcceptPostValidationOnly) {
  Scenario scenario = GivenCostsScenario();
  scenario.mutable_training()->set_post_validation(true);
  scenario.mutable_training()->set_rollback_fraction(0.5);
  EXPECT_TRUE(ResolveScenario("s", scenario).ok());
  scenario.mutable_training()->set_rollback_fraction(1.5);
  EXPECT_THAT(MessageOf(scenario),
              HasSubstr("training.rollback_fraction is 1.5"));
  scenario.mutable_training()->set_rollback_fraction(0);
  scenario.mutable_training()->set_dropout(true);
  EXPECT_THAT(MessageOf(scenario),
              HasSubstr("training cannot be combined with costs"));
}

TEST(ScenarioProblemsTest, GivenCostsRefuseWhatTheyReplace) {
  Scenario scenario = GivenCostsScenario();
  scenario.MergeFrom(Small());
  const std::string message = MessageOf(scenario);
  for (const char* field :
       {"model", "cluster", "num_nodes", "batch", "parallelism.data"}) {
    EXPECT_THAT(message, HasSubstr(absl::StrCat(
                             "s: ", field, " cannot be combined with costs")));
  }
}

TEST(ScenarioProblemsTest, GivenCostsNeedTheirNumbers) {
  Scenario scenario;
  scenario.mutable_costs();
  EXPECT_THAT(
      ProblemsOf(scenario),
      ElementsAre("s: parallelism.pipeline is missing, expected the number of "
                  "ranks",
                  "s: num_microbatches is missing, expected at least 1",
                  "s: costs.stages is empty, expected one entry, or one per "
                  "stage"));
}

TEST(ScenarioProblemsTest, StagesOfGivenCostsAreOneOrAll) {
  Scenario scenario = GivenCostsScenario();
  const auto stage = scenario.costs().stages(0);
  for (int i = 1; i < 8; ++i) *scenario.mutable_costs()->add_stages() = stage;
  EXPECT_THAT(ProblemsOf(scenario),
              ElementsAre("s: costs.stages has 8 entries, expected 1 or "
                          "pipeline 4 x chunks 1 = 4, or "
                          "costs.blocks_per_stage (weir import)"));
  scenario.mutable_parallelism()->set_chunks(2);
  scenario.set_schedule("interleaved-1f1b");
  EXPECT_TRUE(ResolveScenario("s", scenario).ok());
}

TEST(ScenarioProblemsTest, EmptyScenarioNamesAllThatIsMissing) {
  EXPECT_THAT(
      ProblemsOf(Scenario()),
      ElementsAre(
          "s: model is missing, expected a preset (weir model list) or a file",
          "s: cluster is missing, expected a preset (weir cluster list) or a "
          "file",
          "s: batch.global_batch_size is missing, expected the sequences per "
          "batch over all replicas"));
}

TEST(ScenarioProblemsTest, ProblemsOfAllSourcesComeTogether) {
  Scenario scenario = Small();
  scenario.set_model("gpt9");
  scenario.set_cluster("dgx-9");
  scenario.set_profile("a9");
  scenario.mutable_batch()->set_global_batch_size(33);
  EXPECT_THAT(
      ProblemsOf(scenario),
      ElementsAre(
          "s: batch.global_batch_size is 33, expected a multiple of "
          "batch.microbatch_size 2 x parallelism.data 2 = 4; nearest: "
          "32 or 36",
          StartsWith("s: model gpt9: is neither a file nor a preset"),
          StartsWith("s: cluster dgx-9: is neither a file nor a preset"),
          StartsWith("s: profile a9: is neither a file nor a preset")));
}

TEST(ScenarioProblemsTest, OneMissingNameIsNotFound) {
  Scenario scenario = Small();
  scenario.set_model("gpt9");
  EXPECT_EQ(ResolveScenario("s", scenario).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(ScenarioProblemsTest, ClusterThatIsTooSmallIsCounted) {
  Scenario scenario = Small();
  scenario.mutable_parallelism()->set_data(4);
  EXPECT_THAT(ProblemsOf(scenario),
              ElementsAre("s: parallelism.tensor 1 x parallelism.pipeline 4 x "
                          "parallelism.data 4 needs 16 GPUs, but the cluster "
                          "has 8; --nodes 2 has enough, "
                          "--dp 2 uses 8"));
}

TEST(ScenarioProblemsTest, TensorMustDivideTheModel) {
  Scenario scenario = Small();
  scenario.mutable_parallelism()->set_tensor(5);
  scenario.mutable_parallelism()->clear_pipeline();
  scenario.mutable_parallelism()->set_data(1);
  EXPECT_THAT(ProblemsOf(scenario),
              ElementsAre("s: parallelism.tensor is 5, expected a divisor of "
                          "the model's 12 heads",
                          HasSubstr("12 key-value heads"),
                          HasSubstr("768 hidden units"),
                          HasSubstr("3072 feed-forward units")));
}

TEST(ScenarioProblemsTest, KeyValueHeadsMayBeCopied) {
  Scenario scenario = Small();
  scenario.set_model("llama-2-70b");  // 64 heads, 8 key-value heads
  scenario.set_num_nodes(2);
  scenario.mutable_parallelism()->Clear();
  scenario.mutable_parallelism()->set_tensor(16);
  const auto resolved = ResolveScenario("s", scenario);
  EXPECT_TRUE(resolved.ok()) << resolved.status();
}

TEST(ScenarioProblemsTest, SequencesBeyondTheLearnedPositionsAreRefused) {
  Scenario scenario = Small();
  scenario.mutable_batch()->set_sequence_length(1025);
  EXPECT_THAT(ProblemsOf(scenario),
              ElementsAre("s: batch.sequence_length is 1025, expected at most "
                          "the model's 1024 positions"));
  scenario.set_model("llama-2-7b");  // rotary positions
  scenario.mutable_batch()->set_sequence_length(8192);
  EXPECT_TRUE(ResolveScenario("s", scenario).ok());
}

TEST(ScenarioProblemsTest, SequenceParallelMustDivideTheSequence) {
  Scenario scenario = Small();
  scenario.mutable_parallelism()->set_tensor(2);
  scenario.mutable_parallelism()->set_data(1);
  scenario.mutable_parallelism()->set_sequence_parallel(true);
  scenario.mutable_batch()->set_sequence_length(1023);
  EXPECT_THAT(ProblemsOf(scenario),
              ElementsAre("s: parallelism.sequence_parallel cannot divide "
                          "sequences of 1023 tokens over tensor 2"));
}

TEST(ScenarioProblemsTest, ContextParallelismMustDivideSequencesAndHeads) {
  Scenario scenario = Small();  // 1024 tokens, 12 heads
  Parallelism& parallelism = *scenario.mutable_parallelism();
  parallelism.set_data(1);
  parallelism.set_context(2);
  EXPECT_TRUE(ResolveScenario("s", scenario).ok());
  scenario.mutable_batch()->set_sequence_length(1022);
  EXPECT_THAT(ProblemsOf(scenario),
              ElementsAre("s: batch.sequence_length is 1022, expected a "
                          "multiple of 2 x parallelism.context 2 = 4: each "
                          "rank has two chunks of every sequence"));
  scenario.mutable_batch()->clear_sequence_length();
  scenario.mutable_training()->set_flash_attention(false);
  EXPECT_THAT(ProblemsOf(scenario),
              ElementsAre("s: training.flash_attention is off, expected on: "
                          "context parallelism needs fused attention"));
  scenario.mutable_training()->clear_flash_attention();
  parallelism.set_context_method(CONTEXT_A2A_P2P);
  EXPECT_THAT(MessageOf(scenario),
              HasSubstr("s: parallelism.hierarchical_context is \"\", expected "
                        "two numbers whose product is parallelism.context 2"));
  parallelism.set_context_method(CONTEXT_A2A);
  parallelism.add_hierarchical_context(2);
  EXPECT_THAT(MessageOf(scenario),
              HasSubstr("s: parallelism.hierarchical_context is given, but"));
  parallelism.clear_hierarchical_context();
  parallelism.set_pipeline(1);
  parallelism.set_context(8);
  EXPECT_THAT(ProblemsOf(scenario),
              ElementsAre("s: parallelism.context_method is a2a over 8 GPUs, "
                          "expected that these x parallelism.tensor 1 divide "
                          "the model's 12 key-value heads"));
}

TEST(ScenarioProblemsTest, ExpertsMayBeSharedByContextParallelRanks) {
  Scenario scenario = Small();
  scenario.set_model("mixtral-8x7b");
  Parallelism& parallelism = *scenario.mutable_parallelism();
  parallelism.set_data(1);
  parallelism.set_context(2);
  parallelism.set_context_method(CONTEXT_ALL_GATHER);
  parallelism.set_expert(2);
  const auto resolved = ResolveScenario("s", scenario);
  EXPECT_TRUE(resolved.ok()) << resolved.status();
  parallelism.set_expert(4);
  EXPECT_THAT(MessageOf(scenario),
              HasSubstr("s: parallelism.expert is 4, expected a divisor of "
                        "parallelism.data 1 x parallelism.context 2"));
}

TEST(ScenarioProblemsTest, ShardsOfStatesNeedAFlush) {
  Scenario scenario = Small();
  scenario.set_schedule("pipedream");
  scenario.mutable_training()->set_distributed_optimizer(true);
  EXPECT_THAT(ProblemsOf(scenario),
              ElementsAre("s: training.distributed_optimizer needs a schedule "
                          "with a flush, but pipedream has none"));
  scenario.set_schedule("1f1b");
  EXPECT_TRUE(ResolveScenario("s", scenario).ok());
}

TEST(ScenarioProblemsTest, OneKindOfSharding) {
  Scenario scenario = Small();
  scenario.mutable_training()->set_fully_sharded(true);
  EXPECT_TRUE(ResolveScenario("s", scenario).ok());
  scenario.mutable_training()->set_distributed_optimizer(true);
  EXPECT_THAT(
      ProblemsOf(scenario),
      ElementsAre("s: training.distributed_optimizer cannot be combined with "
                  "fully_sharded, which includes it"));
  scenario.mutable_training()->set_distributed_optimizer(false);
}

// Mixtral 8x7B on four GPUs of a pipeline rank.
Scenario WithExperts(uint32_t tensor, uint32_t data) {
  Scenario scenario = Small();
  scenario.set_model("mixtral-8x7b");
  Parallelism& parallelism = *scenario.mutable_parallelism();
  parallelism.set_tensor(tensor);
  parallelism.set_data(data);
  parallelism.set_pipeline(1);
  parallelism.set_sequence_parallel(tensor > 1);
  return scenario;
}

TEST(ScenarioProblemsTest, ExpertsFillTheGpusOfAPipelineRank) {
  Scenario scenario = WithExperts(2, 2);
  Parallelism& parallelism = *scenario.mutable_parallelism();
  parallelism.set_expert(4);
  EXPECT_THAT(
      ProblemsOf(scenario),
      ElementsAre(HasSubstr("parallelism.expert is 4, expected a divisor of "
                            "parallelism.data (2)")));
  parallelism.set_expert_tensor(1);
  EXPECT_TRUE(ResolveScenario("s", scenario).ok());
  parallelism.set_expert_tensor(4);
  EXPECT_THAT(ProblemsOf(scenario),
              ElementsAre("s: parallelism.expert is 4, expected that it x "
                          "parallelism.expert_tensor 4 divides "
                          "parallelism.tensor 2 x parallelism.data 2 = 4"));
  parallelism.set_expert(1);
  parallelism.set_expert_tensor(3);
  EXPECT_THAT(ProblemsOf(scenario),
              ElementsAre(HasSubstr("parallelism.expert is 1, expected that it "
                                    "x parallelism.expert_tensor 3 divides")));
  scenario = WithExperts(1, 3);
  scenario.mutable_parallelism()->set_expert_tensor(3);
  EXPECT_THAT(ProblemsOf(scenario),
              Contains("s: parallelism.expert_tensor is 3, expected a divisor "
                       "of the model's 14336 feed-forward units per expert"));
  scenario = Small();
  scenario.mutable_parallelism()->set_expert_tensor(2);
  scenario.mutable_training()->set_expert_imbalance(2);
  EXPECT_THAT(ProblemsOf(scenario),
              Contains("s: parallelism.expert_tensor is 2, expected 1: the "
                       "model has no experts"));
  EXPECT_THAT(ProblemsOf(scenario),
              Contains("s: training.expert_imbalance is 2, expected 1: the "
                       "model has no experts"));
}

TEST(ScenarioProblemsTest, ImbalanceIsThatOfSomeDistribution) {
  Scenario scenario = WithExperts(1, 4);
  scenario.mutable_training()->set_expert_imbalance(4);
  EXPECT_TRUE(ResolveScenario("s", scenario).ok());
  scenario.mutable_training()->set_expert_imbalance(5);
  EXPECT_THAT(ProblemsOf(scenario),
              ElementsAre("s: training.expert_imbalance is 5, expected at most "
                          "4, the model's 8 experts / 2 experts per token"));
  scenario.mutable_training()->set_expert_imbalance(0.5);
  EXPECT_THAT(ProblemsOf(scenario),
              ElementsAre("s: training.expert_imbalance is 0.5, expected at "
                          "least 1: tokens of the most loaded expert over the "
                          "mean"));
}

TEST(ScenarioProblemsTest, GroupsOfShardsDivideTheReplicas) {
  Scenario scenario = WithExperts(1, 4);
  Parallelism& parallelism = *scenario.mutable_parallelism();
  scenario.mutable_training()->set_distributed_optimizer(true);
  parallelism.set_expert(2);
  parallelism.set_data_replicate(2);
  EXPECT_TRUE(ResolveScenario("s", scenario).ok());
  parallelism.set_data_replicate(3);
  EXPECT_THAT(ProblemsOf(scenario),
              ElementsAre("s: parallelism.data_replicate is 3, expected a "
                          "divisor of parallelism.data (4)"));
  parallelism.set_data_replicate(4);
  EXPECT_THAT(ProblemsOf(scenario),
              ElementsAre("s: parallelism.data_replicate is 4, which leaves "
                          "groups of 1 GPUs per pipeline rank, expected a "
                          "multiple of the 2 that have all experts "
                          "(parallelism.expert x parallelism.expert_tensor)"));
  parallelism.set_data_replicate(2);
  scenario.mutable_training()->set_distributed_optimizer(false);
  EXPECT_THAT(ProblemsOf(scenario),
              ElementsAre("s: parallelism.data_replicate is 2, expected 1 "
                          "unless training.fully_sharded or "
                          "training.distributed_optimizer shards something"));
}

TEST(ScenarioProblemsTest, BucketsHaveASize) {
  Scenario scenario = Small();
  scenario.mutable_communication()->set_bucket_bytes(-1);
  EXPECT_THAT(ProblemsOf(scenario),
              ElementsAre(HasSubstr("communication.bucket_bytes is -1")));
}

TEST(ScenarioProblemsTest, PrecisionMustBeTheDevices) {
  Scenario scenario = Small();
  scenario.set_profile("v100-sxm2-16gb");
  scenario.mutable_training()->set_precision(MIXED_BF16);
  EXPECT_THAT(ProblemsOf(scenario),
              ElementsAre("s: training.precision is MIXED_BF16, but device "
                          "V100-SXM2-16GB has no peak rate for bf16"));
  scenario.mutable_training()->set_precision(FP32);
  EXPECT_TRUE(ResolveScenario("s", scenario).ok());
}

TEST(ScenarioProblemsTest, BlocksPerStageMustFitStagesAndModel) {
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

TEST(ScenarioProblemsTest, AbsurdNumbersAreRefusedBeforeMemoryIsTaken) {
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

TEST(ScenarioProblemsTest, AnUnknownScheduleIsToldWithBadFields) {
  Scenario scenario = Small();
  scenario.set_schedule("nonesuch");
  scenario.mutable_parallelism()->set_order("x");
  EXPECT_THAT(ProblemsOf(scenario),
              ElementsAre(StartsWith("s: parallelism.order is \"x\""),
                          StartsWith("s: schedule is nonesuch, expected")));
}

TEST(ScenarioProblemsTest, NamesThatAreNoUtf8AreRefused) {
  Scenario scenario = Small();
  scenario.set_profile("a\xff");
  EXPECT_THAT(ProblemsOf(scenario),
              testing::Contains("s: profile is \"a\\xff\", expected UTF-8"));
}

TEST(ScenarioProblemsTest, TooManyActionsAreCounted) {
  Scenario scenario = GivenCostsScenario();
  scenario.mutable_parallelism()->set_pipeline(1000);
  scenario.set_num_microbatches(1000000);
  EXPECT_THAT(
      ProblemsOf(scenario),
      ElementsAre("s: needs 2e+09 actions (2 x 1000 GPUs x 1 chunks x "
                  "1000000 microbatches x 1 batches), about 298 GiB and "
                  "1.11 hours, expected at most 2e+08 actions"));
  scenario.set_num_microbatches(100000);
  EXPECT_TRUE(ResolveScenario("s", scenario).ok());
}

TEST(ScenarioProblemsTest, MicrobatchesAreNotGivenWithAModel) {
  Scenario scenario = Small();
  scenario.set_num_microbatches(8);
  EXPECT_THAT(ProblemsOf(scenario),
              ElementsAre(HasSubstr("num_microbatches is given without "
                                    "costs")));
}

TEST(ScenarioProblemsTest, UnknownEnumNumbersAreRefused) {
  EXPECT_THAT(MessageOf(Parse(R"(
        training { precision: 17 optimizer: 18 recompute: 19 }
        communication { transfers: 20 gradient_reduction: 21 })")),
              AllOf(HasSubstr("training.precision is 17"),
                    HasSubstr("training.optimizer is 18"),
                    HasSubstr("training.recompute is 19"),
                    HasSubstr("communication.transfers is 20"),
                    HasSubstr("communication.gradient_reduction is 21")));
}

TEST(ScenarioProblemsTest, KindsOfBlocksMustFitTheParallelism) {
  Scenario scenario = Small();
  scenario.clear_model();
  Transformer& transformer = *scenario.mutable_transformer();
  transformer.set_num_layers(4);
  transformer.set_hidden_size(64);
  transformer.set_num_heads(4);
  transformer.set_vocabulary_size(128);
  BlockKind& mamba = *transformer.add_kinds();
  mamba.set_letter("M");
  mamba.set_name("Mamba");
  Mamba2& sizes = *mamba.mutable_block()->mutable_mamba2();
  sizes.set_num_heads(6);
  sizes.set_head_size(8);
  sizes.set_state_size(8);
  sizes.set_num_groups(1);
  BlockKind& full = *transformer.add_kinds();
  full.set_letter("F");
  transformer.set_pattern("MF");
  scenario.mutable_parallelism()->set_tensor(4);
  scenario.mutable_training()->set_recompute(RECOMPUTE_OPERATORS);
  EXPECT_THAT(MessageOf(scenario),
              AllOf(HasSubstr("parallelism.tensor is 4, expected a divisor of "
                              "the model's 6 heads of each Mamba block"),
                    HasSubstr("training.recompute is RECOMPUTE_OPERATORS, "
                              "expected none, selective or full: each Mamba "
                              "block of the model has other parts")));
}

}  // namespace weir::scenarios::scenario_problems_test
