// SPDX-License-Identifier: Apache-2.0
#include "scenarios/uneven_split.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/scenarios/small_scenarios.h"

namespace weir::scenarios::uneven_split_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// 12 blocks on 4 ranks.
Scenario With(const std::string& parallelism, const char* schedule = "1f1b") {
  return Parse(absl::StrCat(R"(
    model: "gpt2" cluster: "dgx-a100" num_nodes: 1
    batch { microbatch_size: 1 global_batch_size: 32 }
    schedule: ")",
                            schedule, "\" parallelism { ", parallelism, " }"));
}

Parallelism Resolved(const std::string& parallelism,
                     const char* schedule = "1f1b") {
  const auto resolved = ResolveScenario("s", With(parallelism, schedule));
  EXPECT_TRUE(resolved.ok()) << resolved.status();
  return resolved.ok() ? resolved->scenario.parallelism() : Parallelism();
}

TEST(UnevenSplitTest, OtherRanksShareWhatIsLeft) {
  const Parallelism both = Resolved(
      "pipeline: 4 decoder_first_pipeline_num_layers: 2 "
      "decoder_last_pipeline_num_layers: 4");
  EXPECT_THAT(both.blocks_per_stage(), ElementsAre(2, 3, 3, 4));
  EXPECT_FALSE(SplitsUnevenly(both));
  EXPECT_THAT(Resolved("pipeline: 4 decoder_first_pipeline_num_layers: 6")
                  .blocks_per_stage(),
              ElementsAre(6, 2, 2, 2));
  EXPECT_THAT(Resolved("pipeline: 2 decoder_last_pipeline_num_layers: 5")
                  .blocks_per_stage(),
              ElementsAre(7, 5));
}

// Every stage of a rank has an equal part of the rank's blocks.
TEST(UnevenSplitTest, ChunksDivideARank) {
  EXPECT_THAT(Resolved("pipeline: 2 chunks: 2 "
                       "decoder_first_pipeline_num_layers: 4",
                       "interleaved-1f1b")
                  .blocks_per_stage(),
              ElementsAre(2, 4, 2, 4));
}

// 12 blocks, the embedding and the head are 14 layers on 2 ranks.
TEST(UnevenSplitTest, EndsCountAsBlocks) {
  EXPECT_THAT(Resolved("pipeline: 2 "
                       "account_for_embedding_in_pipeline_split: true "
                       "account_for_loss_in_pipeline_split: true")
                  .blocks_per_stage(),
              ElementsAre(6, 6));
  EXPECT_THAT(Resolved("data: 1 pipeline: 7 "
                       "account_for_embedding_in_pipeline_split: true "
                       "account_for_loss_in_pipeline_split: true")
                  .blocks_per_stage(),
              ElementsAre(1, 2, 2, 2, 2, 2, 1));
}

TEST(UnevenSplitTest, AStageMayHaveOnlyTheHead) {
  Scenario scenario =
      With("pipeline: 2 account_for_loss_in_pipeline_split: true");
  scenario.set_model("");
  scenario.mutable_transformer()->set_num_layers(1);
  scenario.mutable_transformer()->set_hidden_size(64);
  scenario.mutable_transformer()->set_num_heads(4);
  scenario.mutable_transformer()->set_vocabulary_size(1000);
  const auto resolved = ResolveScenario("s", scenario);
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_EQ(resolved->scenario.parallelism().layout(), "Et|L");
  EXPECT_THAT(resolved->scenario.parallelism().blocks_per_stage(), IsEmpty());
}

TEST(UnevenSplitTest, ErrorsNameTheFields) {
  EXPECT_THAT(
      MessageOf(With("pipeline: 4 decoder_first_pipeline_num_layers: 2")),
      HasSubstr("parallelism.decoder_first_pipeline_num_layers leaves 10 "
                "blocks of the model's 12 blocks for 3 of "
                "parallelism.pipeline 4 ranks"));
  EXPECT_THAT(
      MessageOf(With("pipeline: 4 decoder_last_pipeline_num_layers: 12")),
      HasSubstr("leaves 0 blocks"));
  EXPECT_THAT(MessageOf(With("pipeline: 1 decoder_first_pipeline_num_layers: 6 "
                             "decoder_last_pipeline_num_layers: 6")),
              HasSubstr("for 0 of parallelism.pipeline 1 ranks"));
  EXPECT_THAT(
      MessageOf(With("pipeline: 4 account_for_loss_in_pipeline_split: true")),
      HasSubstr("leaves 13 layers (with 1 of the ends)"));
  EXPECT_THAT(MessageOf(With("pipeline: 2 chunks: 2 "
                             "decoder_first_pipeline_num_layers: 5",
                             "interleaved-1f1b")),
              HasSubstr("gives rank 0 5 blocks, expected a multiple of "
                        "parallelism.chunks 2"));
  EXPECT_THAT(MessageOf(With("pipeline: 2 layout: \"Et*6|t*6L\" "
                             "decoder_first_pipeline_num_layers: 6")),
              HasSubstr("cannot be combined with parallelism.layout"));
  EXPECT_THAT(MessageOf(With("pipeline: 2 decoder_first_pipeline_num_layers: 6 "
                             "account_for_loss_in_pipeline_split: true")),
              HasSubstr("cannot be combined with "
                        "parallelism.account_for_loss_in_pipeline_split"));
}

}  // namespace weir::scenarios::uneven_split_test
