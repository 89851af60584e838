// SPDX-License-Identifier: Apache-2.0
#include "cli/options/placement_options.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/values.h"
#include "cli/options/add_option.h"
#include "cli/options/flags.h"
#include "scenarios/scenario.pb.h"

namespace weir::cli {
namespace {

absl::StatusOr<uint32_t> ParseNumGpus(const std::string& text) {
  if (absl::StrContains(text, ',')) {
    return absl::InvalidArgumentError(
        absl::StrCat("is ", text, ", expected the number of GPUs to use; ",
                     "--placement ", text, " lists GPUs"));
  }
  return ParseCount(text);
}

// Adds Megatron-LM's options for other numbers of blocks in the first and the
// last rank, and for a vocabulary that all ranks share.
void AddUnevenSplit(CLI::App* app, Scenario* scenario) {
  AddCount(
      app, "--decoder-first-pipeline-num-layers",
      "blocks of the first pipeline rank",
      [=](uint32_t n) {
        scenario->mutable_parallelism()->set_decoder_first_pipeline_num_layers(
            n);
      })
      ->default_str("an equal share");
  AddCount(
      app, "--decoder-last-pipeline-num-layers",
      "blocks of the last pipeline rank",
      [=](uint32_t n) {
        scenario->mutable_parallelism()->set_decoder_last_pipeline_num_layers(
            n);
      })
      ->default_str("an equal share");
  AddSwitch(app, "--account-for-embedding-in-pipeline-split",
            "count the embedding as a block of the first stage", [=](bool on) {
              scenario->mutable_parallelism()
                  ->set_account_for_embedding_in_pipeline_split(on);
            });
  AddSwitch(
      app, "--account-for-loss-in-pipeline-split",
      "count the head and loss as a block of the last stage", [=](bool on) {
        scenario->mutable_parallelism()->set_account_for_loss_in_pipeline_split(
            on);
      });
  AddChoice<VocabularyParallel>(
      app, "--vocabulary-parallel",
      "shard the vocabulary across the pipeline ranks, with one or two "
      "barriers per microbatch (algorithms 2 and 1 of Yeung et al. 2024)",
      {{"none", VOCABULARY_NOT_SHARDED},
       {"one-barrier", VOCABULARY_ONE_BARRIER},
       {"two-barriers", VOCABULARY_TWO_BARRIERS}},
      [=](VocabularyParallel mode) {
        scenario->mutable_parallelism()->set_vocabulary_parallel(mode);
      })
      ->default_str("none");
}

}  // namespace

void AddPlacement(CLI::App* app, ScenarioFlags* flags) {
  Scenario* scenario = &flags->overrides;
  app->option_defaults()->group("Parallelism");
  AddCount(app, "--dp,--data-parallel-size",
           "data-parallel size (replicas of the pipeline)",
           [=](uint32_t n) { scenario->mutable_parallelism()->set_data(n); })
      ->default_str("GPUs / (tp x pp x cp)");
  AddCount(app, "--data-replicate,--num-distributed-optimizer-instances",
           "groups of data-parallel GPUs, within each of which what training "
           "shards is sharded (hybrid sharding)",
           [=](uint32_t n) {
             scenario->mutable_parallelism()->set_data_replicate(n);
           })
      ->default_str("1");
  AddText(app, "--order", "ORDER",
          "parallel dimensions in the order of GPU numbers, fastest-varying "
          "first: tp-dp-pp or tp-pp-dp",
          [=](const std::string& order) {
            scenario->mutable_parallelism()->set_order(order);
          })
      ->default_str("tp-dp-pp");
  AddOption(
      app, "--gpus", "N",
      "number of GPUs to use; sets the number of nodes unless --nodes is "
      "given",
      ParseNumGpus,
      [=](uint32_t n) { scenario->mutable_parallelism()->set_num_gpus(n); })
      ->default_str("all of the cluster");
  AddOption(app, "--placement", "N,N,...",
            "explicit placement: GPU numbers of one replica after the other, "
            "each rank by rank",
            ParseNumbers,
            [=](const std::vector<uint32_t>& gpus) {
              scenario->mutable_parallelism()->mutable_gpus()->Assign(
                  gpus.begin(), gpus.end());
            })
      ->default_str("by --order");
  AddOption(
      app, "--blocks-per-stage", "N,N,...",
      "number of blocks of each stage, for an uneven partition", ParseNumbers,
      [=](const std::vector<uint32_t>& blocks) {
        scenario->mutable_parallelism()->mutable_blocks_per_stage()->Assign(
            blocks.begin(), blocks.end());
      })
      ->default_str("an equal share");
  AddText(
      app, "--layout,--pipeline-model-parallel-layout", "LAYOUT",
      "layers of each stage, in Megatron-LM's notation: \"Et*3|(tt|)*2t|L\"",
      [=](const std::string& layout) {
        scenario->mutable_parallelism()->set_layout(layout);
      })
      ->default_str("an equal share");
  AddUnevenSplit(app, scenario);
}

}  // namespace weir::cli
