// SPDX-License-Identifier: Apache-2.0
// "schedule synthesize".
#include "absl/strings/str_cat.h"
#include "cli/options/add_option.h"
#include "cli/options/scenario_options.h"
#include "cli/options/shared_options.h"
#include "cli/weir/weir_app.h"

namespace weir::cli {
namespace {

absl::StatusOr<double> ParseMemoryLimit(absl::string_view text) {
  if (text == "0") return 0;
  return ParsePositive(text);
}

}  // namespace

void AddSynthesizeCommand(CLI::App* app, CommandLine* line) {
  Flags* flags = &line->flags;
  SynthesisFlags* synthesis = &flags->synthesis;
  CLI::App* command = AddWeirCommand(
      app->get_subcommand("schedule"), "synthesize",
      "Searches for a better schedule than the named ones, with a bound.",
      {"schedule synthesize --pp 4 --microbatches 6 "
       "--costs f=1,i=1.1,w=0.8,c=0.1 --memory-limit 3 --method local",
       "schedule synthesize --pp 4 --chunks 2 --microbatches 7 --method local"},
      RunScheduleSynthesize, line);
  AddScenarioName(command, "preset or textproto file; flags override it",
                  &flags->scenario);
  AddScenario(command, /*several=*/false, &flags->scenario);
  // Needs whole backward passes, which a synthesized schedule divides.
  command->remove_option(command->get_option("--cpu-offloading-num-layers"));
  command->option_defaults()->group("Search");
  AddChoice<int>(command, "--objective",
                 "makespan: from first start to last end; span: longest time "
                 "of a rank",
                 {{"makespan", 0}, {"span", 1}}, &synthesis->objective)
      ->default_str("makespan");
  AddOption(command, "--memory-limit", "N",
            "maximum number of activations that a rank may hold, in "
            "microbatches (of the "
            "largest stage, on each of its chunks); 0: no limit",
            ParseMemoryLimit, &synthesis->memory_limit)
      ->default_str("number of ranks, as for 1F1B");
  AddSwitch(command, "--offload", "allow offloading activations to the host",
            &synthesis->offload);
  AddChoice<int>(command, "--method",
                 "milp: mixed-integer program; local: local search; auto: both",
                 {{"auto", 0}, {"milp", 1}, {"local", 2}}, &synthesis->method)
      ->default_str("auto");
  AddSeconds(command, "--seconds", "time limit of the MILP solver CBC",
             &synthesis->seconds)
      ->default_str(absl::StrCat(synthesis->seconds));
  AddCount(command, "--moves", "moves per run of the local search",
           &synthesis->num_moves)
      ->default_str("depends on the size");
  AddCount(command, "--seed", "random seed of the local search",
           &synthesis->seed)
      ->default_str(absl::StrCat(synthesis->seed));
  AddText(command, "-o,--out", "FILE.csv",
          "write the schedule (FILE.json with offloads) and its proof "
          "(FILE.csv.proof.json)",
          &synthesis->out)
      ->group("Output");
  AddReport(command, "--report",
            "the timelines of the schedule and of the best named one",
            &flags->output.report);
  AddFormat(command, /*csv=*/true, &flags->output);
  AddForce(command, &flags->output.force);
}

}  // namespace weir::cli
