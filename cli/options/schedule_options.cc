// SPDX-License-Identifier: Apache-2.0
// Options of the "weir schedule" commands.
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "cli/options/option_group.h"
#include "cli/options/scenario_options.h"

namespace weir::cli {
namespace {

Options OptionsOfScheduleSource(Flags* flags) {
  return OptionsOfNamed(
      "SCHEDULE",
      "name (see weir schedule list), or a file in PyTorch's CSV format",
      flags);
}

void AddOrderCosts(Options* options, ScenarioFlags* flags) {
  Group("Schedule", options)
      .Text("--costs", "COSTS",
            "costs for which an automatic order is made: f=1,i=1,w=1,c=0.1 (as "
            "in weir simulate), or a file",
            &flags->costs);
}

Options OptionsOfSchedule(Flags* flags, bool csv) {
  Options options = OptionsOfScheduleSource(flags);
  AddPipeline(&options, &flags->scenario.overrides, "4");
  AddOrderCosts(&options, &flags->scenario);
  AddMicrobatches(&options, &flags->scenario.overrides, "8",
                  "1; 3 without a flush");
  AddFormat(&options, &flags->output, csv);
  AddMessages(&options, &flags->output);
  return options;
}

void AddDialect(Options* options, ScheduleFlags* schedule) {
  Group group("Schedule", options);
  group
      .Choice("--dialect",
              "format of a schedule file: PyTorch's, or PyTorch's of 2024",
              {{"pytorch", 0}, {"pytorch-legacy", 1}},
              [=](int value) { schedule->legacy = value == 1; })
      .fallback = "pytorch";
}

}  // namespace

Options OptionsOfScheduleList(Flags* flags) {
  Options options;
  AddFormat(&options, &flags->output, /*csv=*/false);
  AddMessages(&options, &flags->output);
  return options;
}

Options OptionsOfScheduleShow(Flags* flags) {
  return OptionsOfSchedule(flags, /*csv=*/true);
}

Options OptionsOfScheduleSemantics(Flags* flags) {
  return OptionsOfSchedule(flags, /*csv=*/false);
}

Options OptionsOfScheduleLint(Flags* flags) {
  Options options = OptionsOfScheduleSource(flags);
  AddPipeline(&options, &flags->scenario.overrides, "4");
  AddOrderCosts(&options, &flags->scenario);
  AddMicrobatches(&options, &flags->scenario.overrides, "8",
                  "1; 3 without a flush");
  AddDialect(&options, &flags->schedule);
  Option& runtime = Group("Schedule", &options)
                        .Add("--runtime", "R,R,...",
                             "runtimes that must be able to run it, besides "
                             "buffered sends: rendezvous, pytorch, megatron",
                             [=](const std::string& text) {
                               flags->schedule.runtimes = absl::StrSplit(
                                   text, ',', absl::SkipWhitespace());
                               return absl::OkStatus();
                             });
  runtime.repeats = true;
  AddFormat(&options, &flags->output, /*csv=*/false);
  AddMessages(&options, &flags->output);
  return options;
}

Options OptionsOfScheduleConvert(Flags* flags) {
  Options options = OptionsOfScheduleSource(flags);
  AddPipeline(&options, &flags->scenario.overrides, "4");
  AddOrderCosts(&options, &flags->scenario);
  AddMicrobatches(&options, &flags->scenario.overrides, "8",
                  "1; 3 without a flush");
  ScheduleFlags* schedule = &flags->schedule;
  AddDialect(&options, schedule);
  Group group("Schedule", &options);
  group.Switch(
      "--lower",
      "add transfers, weight gathering and gradient reduction as PyTorch does",
      [=](bool on) { schedule->lower = on; });
  group.Switch("--merge-backward",
               "merge every I that is directly followed by its W into a B",
               [=](bool on) { schedule->merge_backward = on; });
  group.Switch("--transfers-only", "add only transfers, with --lower",
               [=](bool on) { schedule->transfers_only = on; });
  Group("Output", &options)
      .Text("--output,-o", "FILE", "file to write instead of standard output",
            &schedule->output);
  AddForce(&options, &flags->output);
  AddMessages(&options, &flags->output);
  return options;
}

Options OptionsOfScheduleSynthesize(Flags* flags) {
  Options options;
  SynthesisFlags* synthesis = &flags->synthesis;
  Group("", &options)
      .Text("SCENARIO", "", "preset or textproto file; flags override it",
            &flags->scenario.scenario);
  AddScenario(&options, &flags->scenario, /*several=*/false);
  Group group("Search", &options);
  group
      .Choice("--objective",
              "makespan: from first start to last end; span: longest time of a "
              "rank",
              {{"makespan", 0}, {"span", 1}},
              [=](int value) { synthesis->objective = value; })
      .fallback = "makespan";
  group
      .Add("--memory-limit", "N",
           "most activations that a rank may hold, in microbatches (of the "
           "largest stage, on each of its chunks); 0: no limit",
           [=](const std::string& text) {
             if (text == "0") {
               synthesis->memory_limit = 0;
               return absl::OkStatus();
             }
             ASSIGN_OR_RETURN(synthesis->memory_limit, ParsePositive(text));
             return absl::OkStatus();
           })
      .fallback = "number of ranks, as for 1F1B";
  group.Switch("--offload", "allow offloading activations to the host",
               [=](bool on) { synthesis->offload = on; });
  group
      .Choice("--method",
              "milp: mixed-integer program; local: local search; auto: both",
              {{"auto", 0}, {"milp", 1}, {"local", 2}},
              [=](int value) { synthesis->method = value; })
      .fallback = "auto";
  group
      .Seconds("--seconds", "time limit of the MILP solver CBC",
               &synthesis->seconds)
      .fallback = "20";
  group
      .Count("--moves", "moves per run of the local search",
             [=](uint32_t n) { synthesis->num_moves = n; })
      .fallback = "depends on the size";
  group
      .Count("--seed", "random seed of the local search",
             [=](uint32_t n) { synthesis->seed = n; })
      .fallback = "1";
  Group("Output", &options)
      .Text("--out,-o", "FILE.csv",
            "write the schedule (FILE.json with offloads) and its proof "
            "(FILE.csv.proof.json)",
            &synthesis->out);
  AddFormat(&options, &flags->output, /*csv=*/true);
  AddForce(&options, &flags->output);
  AddMessages(&options, &flags->output);
  return options;
}

}  // namespace weir::cli
