// SPDX-License-Identifier: Apache-2.0
// "goodput".
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/assets.h"
#include "base/status_macros.h"
#include "base/values.h"
#include "cli/options/add_option.h"
#include "cli/options/import_options.h"
#include "cli/options/scenario_options.h"
#include "cli/options/shared_options.h"
#include "cli/weir/weir_app.h"
#include "plan/goodput/reliability.h"

namespace weir::cli {
namespace {

absl::StatusOr<double> ParsePart(absl::string_view text) {
  absl::StatusOr<double> part = ParsePositive(text);
  if (part.ok() && *part < 1) return part;
  return absl::InvalidArgumentError(
      absl::StrCat("is ", text, ", expected a number between 0 and 1"));
}

// Parses a whole number of at least 0.
absl::StatusOr<uint32_t> ParseNumber(absl::string_view text) {
  ASSIGN_OR_RETURN(const std::vector<uint32_t> numbers, ParseCounts(text, 0));
  if (numbers.size() == 1) return numbers[0];
  return absl::InvalidArgumentError(
      absl::StrCat("is ", text, ", expected one whole number"));
}

// Parses a bandwidth: bytes per second as in 25e9 or 25GiB.
CLI::Option* AddRate(CLI::App* app, const std::string& name,
                     const std::string& help, double* target) {
  return AddOption(app, name, "BYTES", help, ParseBytes, target);
}

void AddJob(CLI::App* app, GoodputFlags* flags) {
  plan::GoodputRequest* request = &flags->request;
  app->option_defaults()->group("Job");
  AddSeconds(app, "--step-seconds",
             "time of a step, instead of the scenario's prediction",
             &request->step.seconds);
  AddCount(app, "--num-gpus", "number of GPUs, without a scenario",
           &flags->num_gpus);
  AddCount(app, "--gpus-per-node", "GPUs of a node, without a scenario",
           &flags->gpus_per_node)
      ->default_str("8");
  AddOption(app, "--tokens-per-step", "N",
            "tokens of a step, as in 16M, without a scenario", ParseTokens,
            &request->tokens_per_step);
  AddOption(app, "--tokens", "N", "tokens to train with, as in 15.6T",
            ParseTokens, &request->tokens)
      ->default_str("those of 30 days");
  AddOption(app, "--price-per-gpu-hour", "PRICE",
            "price of one GPU for an hour, in any currency", ParsePositive,
            &request->price_per_gpu_hour);
  AddOption(
      app, "--target-goodput", "PART",
      "show the largest loss of time per failure that allows this goodput (0 "
      "to 1)",
      ParsePart, &request->target_goodput);
}

void AddFailures(CLI::App* app, GoodputFlags* flags) {
  app->option_defaults()->group("Failures");
  AddText(
      app, "--reliability", "R",
      absl::StrCat("rates of failures: preset (",
                   absl::StrJoin(ListAssets(plan::kReliabilityFolder), ", "),
                   ") or textproto file"),
      &flags->reliability)
      ->default_str(flags->reliability);
  AddText(app, "--mtbf", "NAME=HOURS,...",
          "mean time between failures of one component, in hours, days (d) or "
          "years (y): gpu=50000h,host=2y,nic=10y,switch=20y,software=100h. "
          "software counts once per job, unless the file says otherwise",
          &flags->mtbf)
      ->join(',')
      ->default_str("by --reliability");
  AddSeconds(app, "--detection-seconds", "from a failure until the job stops",
             &flags->detection_seconds)
      ->default_str("by --reliability");
  AddSeconds(app, "--restart-seconds",
             "from then until training continues, without loading",
             &flags->restart_seconds)
      ->default_str("by --reliability");
  AddOption(app, "--spares", "N", "nodes that replace failed ones at once",
            ParseNumber, &flags->num_spares)
      ->default_str("always enough");
  AddSwitch(app, "--elastic",
            "without a spare, continue with one replica fewer until the repair",
            &flags->elastic);
}

void AddCheckpoints(CLI::App* app, GoodputFlags* flags) {
  plan::CheckpointSpec* checkpoint = &flags->request.checkpoint;
  app->option_defaults()->group("Checkpoints");
  AddChoice<plan::CheckpointMode>(
      app, "--checkpoint",
      "training waits for storage, or for copies to host memory, which go to "
      "storage or to other hosts",
      {{"sync", plan::CheckpointMode::kSync},
       {"async", plan::CheckpointMode::kAsync},
       {"in-memory", plan::CheckpointMode::kInMemory}},
      &flags->checkpoint)
      ->default_str("sync");
  AddSwitch(app, "--async-save", "the same as --checkpoint async",
            &flags->async_save);
  AddOption(app, "--checkpoint-bytes", "BYTES",
            "size of a checkpoint, as in 2.3e12 or 2TiB", ParseBytes,
            &checkpoint->bytes)
      ->default_str("weights and optimizer states of the scenario");
  AddRate(app, "--checkpoint-bandwidth",
          "bytes per second of storage, for the whole job, as in 20e9",
          &checkpoint->storage_bytes_per_second);
  AddRate(app, "--snapshot-bandwidth",
          "bytes per second from a GPU to the memory of its host",
          &checkpoint->snapshot_bytes_per_second)
      ->default_str("1e10");
  AddRate(app, "--peer-bandwidth", "bytes per second between two hosts",
          &checkpoint->peer_bytes_per_second)
      ->default_str("2.5e10");
  AddCount(app, "--interval-steps,--save-interval", "steps between checkpoints",
           &flags->interval_steps)
      ->default_str("the best number");
}

}  // namespace

void AddGoodputCommand(CLI::App* app, CommandLine* line) {
  Flags* flags = &line->flags;
  CLI::App* command = AddWeirCommand(
      app, "goodput",
      "Predicts days and cost of a run with failures and checkpoints.",
      {"goodput llama-3-70b-64-h100 --tokens 1T --checkpoint-bandwidth 20e9 "
       "--price-per-gpu-hour 2.5",
       "goodput --step-seconds 105 --num-gpus 384 --reliability bloom-176b "
       "--checkpoint-bytes 2.3e12 --checkpoint-bandwidth 57.5e9 "
       "--interval-steps 100"},
      RunGoodput, line);
  AddScenarioName(command, "preset or textproto file; flags override it",
                  &flags->scenario);
  GoodputFlags* goodput = &flags->goodput;
  AddJob(command, goodput);
  AddFailures(command, goodput);
  AddCheckpoints(command, goodput);
  command->option_defaults()->group("Simulation");
  AddCount(command, "--runs", "simulated runs", &goodput->num_runs)
      ->default_str(absl::StrCat(goodput->num_runs));
  AddCount(command, "--seed", "seed of the failures", &goodput->seed)
      ->default_str(absl::StrCat(goodput->seed));
  AddMethod(command, "Simulation",
            "full simulation of a step, or a faster one without the interval "
            "of its time",
            &flags->fast);
  AddImports(command, &flags->scenario);
  AddScenario(command, /*several=*/false, &flags->scenario);
  AddFormat(command, /*csv=*/false, &flags->output);
  AddReport(command, "--report", "lost time and checkpoint intervals",
            &flags->output.report);
  AddForce(command, &flags->output.force);
}

}  // namespace weir::cli
