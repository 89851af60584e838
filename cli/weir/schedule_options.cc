// SPDX-License-Identifier: Apache-2.0
// "schedule list", "show", "semantics", "lint" and "convert".
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/options/add_option.h"
#include "cli/options/pipeline_options.h"
#include "cli/options/program.h"
#include "cli/options/scenario_options.h"
#include "cli/options/shared_options.h"
#include "cli/weir/weir_app.h"

namespace weir::cli {
namespace {

void AddScheduleSource(CLI::App* app, Flags* flags) {
  AddName(app, "SCHEDULE",
          "name (see weir schedule list), or a file in PyTorch's CSV format",
          &flags->name);
  AddPipeline(app, "4", &flags->scenario);
  AddText(app, "--costs", "COSTS",
          "costs for which an automatic order is made: f=1,i=1,w=1,c=0.1 (as "
          "in weir simulate), or a file",
          &flags->scenario.costs)
      ->group("Schedule");
  AddMicrobatches(app, "8", "1; 3 without a flush", &flags->scenario);
}

void AddDialect(CLI::App* app, ScheduleFlags* schedule) {
  AddChoice<bool>(
      app, "--dialect",
      "dialect of a schedule file: current PyTorch, or PyTorch of 2024",
      {{"pytorch", false}, {"pytorch-legacy", true}}, &schedule->legacy)
      ->group("Schedule")
      ->default_str("pytorch");
}

absl::StatusOr<std::vector<std::string>> ParseRuntimes(
    const std::string& text) {
  return std::vector<std::string>(
      absl::StrSplit(text, ',', absl::SkipWhitespace()));
}

void AddLint(CLI::App* group, CommandLine* line) {
  Flags* flags = &line->flags;
  CLI::App* app = AddWeirCommand(
      group, "lint",
      "Finds errors in a schedule: deadlocks, missing passes, growing memory.",
      {"schedule lint 1f1b --pp 4 --microbatches 8",
       "schedule lint interleaved-1f1b --runtime megatron,pytorch"},
      RunScheduleLint, line);
  AddScheduleSource(app, flags);
  AddDialect(app, &flags->schedule);
  AddOption(app, "--runtime", "R,R,...",
            "also check these runtimes (buffered sends are always checked): "
            "rendezvous, pytorch, megatron",
            ParseRuntimes, &flags->schedule.runtimes)
      ->group("Schedule")
      ->join(',');
  AddFormat(app, /*csv=*/false, &flags->output);
}

void AddConvert(CLI::App* group, CommandLine* line) {
  Flags* flags = &line->flags;
  ScheduleFlags* schedule = &flags->schedule;
  CLI::App* app = AddWeirCommand(
      group, "convert",
      "Converts a schedule to PyTorch's CSV, optionally with transfers.",
      {"schedule convert 1f1b --pp 4 --microbatches 8",
       "schedule convert interleaved-1f1b --lower"},
      RunScheduleConvert, line);
  AddScheduleSource(app, flags);
  AddDialect(app, schedule);
  app->option_defaults()->group("Schedule");
  AddSwitch(
      app, "--lower",
      "add transfers, weight gathering and gradient reduction as PyTorch does",
      &schedule->lower);
  AddSwitch(app, "--merge-backward",
            "merge every I that is directly followed by its W into a B",
            &schedule->merge_backward);
  AddSwitch(app, "--transfers-only", "add only transfers, with --lower",
            &schedule->transfers_only);
  AddText(app, "-o,--output", "FILE",
          "file to write instead of standard output", &schedule->output)
      ->group("Output");
  AddForce(app, &flags->output.force);
}

}  // namespace

void AddScheduleCommands(CLI::App* app, CommandLine* line) {
  Flags* flags = &line->flags;
  CLI::App* group =
      AddCommand(app, "schedule",
                 "Lists, shows, checks, converts and searches schedules.");
  CLI::App* list = AddWeirCommand(
      group, "list", "Lists all schedules with their papers and aliases.",
      {"schedule list", "schedule list --format json"}, RunScheduleList, line);
  AddFormat(list, /*csv=*/false, &flags->output);

  CLI::App* show = AddWeirCommand(
      group, "show",
      "Draws a schedule and shows its weight versions and staleness.",
      {"schedule show 1f1b --pp 4 --microbatches 8",
       "schedule show pipedream-2bw --pp 4 --microbatches 4 --batches 3"},
      RunScheduleShow, line);
  AddScheduleSource(show, flags);
  AddFormat(show, /*csv=*/true, &flags->output);

  CLI::App* semantics = AddWeirCommand(
      group, "semantics",
      "Shows which weights every pass reads and how stale they are.",
      {"schedule semantics pipedream --pp 4 --microbatches 4",
       "schedule semantics pipedream:replicas=3-1:vertical-sync=no --pp 4 "
       "--format json"},
      RunScheduleSemantics, line);
  AddScheduleSource(semantics, flags);
  AddFormat(semantics, /*csv=*/false, &flags->output);

  AddLint(group, line);
  AddConvert(group, line);
}

}  // namespace weir::cli
