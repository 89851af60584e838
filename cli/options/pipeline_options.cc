// SPDX-License-Identifier: Apache-2.0
#include "cli/options/pipeline_options.h"

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_split.h"
#include "cli/options/add_option.h"
#include "cli/options/flags.h"
#include "scenarios/scenario.pb.h"

namespace weir::cli {
namespace {

absl::StatusOr<std::vector<std::string>> ParseSchedules(
    const std::string& text) {
  std::vector<std::string> schedules =
      absl::StrSplit(text, ',', absl::SkipWhitespace());
  if (schedules.empty()) return absl::InvalidArgumentError("is empty");
  return schedules;
}

}  // namespace

void AddPipeline(CLI::App* app, const std::string& pipeline,
                 ScenarioFlags* flags) {
  Scenario* scenario = &flags->overrides;
  app->option_defaults()->group("Parallelism");
  AddCount(
      app, "--pp,--pipeline-model-parallel-size",
      "pipeline-parallel size (ranks)",
      [=](uint32_t n) { scenario->mutable_parallelism()->set_pipeline(n); })
      ->default_str(pipeline);
  AddCount(app, "--chunks,--vpp,--num-virtual-stages-per-pipeline-rank",
           "stages per rank (virtual pipeline stages)",
           [=](uint32_t n) { scenario->mutable_parallelism()->set_chunks(n); })
      ->default_str("as the schedule requires");
}

void AddSchedule(CLI::App* app, bool several, ScenarioFlags* flags) {
  app->option_defaults()->group("Schedule");
  CLI::Option* schedule =
      AddOption(app, "--schedule", several ? "S,S,..." : "S",
                several ? "schedules to compare (weir schedule list); "
                          "interleaved-1f1b:v=4 has 4 stages per rank"
                        : "schedule (weir schedule list); "
                          "interleaved-1f1b:v=4 has 4 stages per rank",
                ParseSchedules, &flags->schedules)
          ->default_str("1f1b, or interleaved-1f1b with --chunks");
  if (several) schedule->join(',');
  AddText(
      app, "--costs", "COSTS",
      "seconds per pass, instead of model and cluster: f=1,b=2,c=0.1 or "
      "f=1,i=1,w=1 (f: forward; b: backward; i, w: its halves for inputs and "
      "weights; c: one hop; o: a forward overlapped with a backward; h: one "
      "transfer to or from the host; p: one weight prediction; z: one "
      "compression; a: bytes saved from forward to backward; g: bytes saved "
      "from I to W), or a file; f=1/1/2 gives a value per stage. Values are "
      "per stage, of which a rank has several with --chunks; if weir chooses "
      "the chunks, they are per rank and divided among its stages",
      &flags->costs);
  AddText(app, "--hop", "SECONDS|FACTORx",
          "time of one hop between ranks, instead of that of --costs: 0.2ms, "
          "or 0.5x for a link that is twice as fast",
          &flags->hop);
  AddMicrobatches(app, "by --gbs", "until steady", flags);
}

void AddMicrobatches(CLI::App* app, const std::string& microbatches,
                     const std::string& batches, ScenarioFlags* flags) {
  Scenario* scenario = &flags->overrides;
  app->option_defaults()->group("Schedule");
  AddCount(app, "--microbatches", "microbatches per batch and pipeline",
           [=](uint32_t n) { scenario->set_num_microbatches(n); })
      ->default_str(microbatches);
  AddCount(app, "--batches", "batches to simulate (schedules without a flush)",
           [=](uint32_t n) { scenario->set_num_batches(n); })
      ->default_str(batches);
}

}  // namespace weir::cli
