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
      "SCHEDULE", "see weir schedule list, or a file: PyTorch's CSV", flags);
}

void AddOrderCosts(Options* options, ScenarioFlags* flags) {
  Group("Schedule", options)
      .Text("--costs", "COSTS",
            "what an automatic order is made for: f=1,i=1,w=1,c=0.1 (as in "
            "weir simulate), or a file",
            &flags->costs);
}

Options OptionsOfSchedule(Flags* flags, bool csv) {
  Options options = OptionsOfScheduleSource(flags);
  AddPipeline(&options, &flags->scenario.overrides, "4");
  AddOrderCosts(&options, &flags->scenario);
  AddMicrobatches(&options, &flags->scenario.overrides, "8",
                  "1, without flush 3");
  AddFormat(&options, &flags->output, csv);
  AddMessages(&options, &flags->output);
  return options;
}

void AddDialect(Options* options, ScheduleFlags* schedule) {
  Group group("Schedule", options);
  group
      .Choice("--dialect", "of a file: PyTorch's, or as it was in 2024",
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
                  "1, without flush 3");
  AddDialect(&options, &flags->schedule);
  Option& runtime = Group("Schedule", &options)
                        .Add("--runtime", "R,R,...",
                             "must run it, beside buffered sends: rendezvous, "
                             "pytorch, megatron",
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
                  "1, without flush 3");
  ScheduleFlags* schedule = &flags->schedule;
  AddDialect(&options, schedule);
  Group group("Schedule", &options);
  group.Switch("--lower", "add transfers, sharding and reduction as PyTorch",
               [=](bool on) { schedule->lower = on; });
  group.Switch("--merge-backward", "make an I with its own W behind it one B",
               [=](bool on) { schedule->merge_backward = on; });
  group.Switch("--transfers-only", "lower without sharding and reduction",
               [=](bool on) { schedule->transfers_only = on; });
  Group("Output", &options)
      .Text("--output,-o", "FILE", "instead of standard output",
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
      .Choice("--objective", "start to end, or the longest of one rank",
              {{"makespan", 0}, {"span", 1}},
              [=](int value) { synthesis->objective = value; })
      .fallback = "makespan";
  group
      .Add("--memory-limit", "N",
           "activations a rank may hold, in microbatches of the largest stage "
           "on each of its chunks; 0: no limit",
           [=](const std::string& text) {
             if (text == "0") {
               synthesis->memory_limit = 0;
               return absl::OkStatus();
             }
             ASSIGN_OR_RETURN(synthesis->memory_limit, ParsePositive(text));
             return absl::OkStatus();
           })
      .fallback = "the ranks, as 1F1B";
  group.Switch("--offload", "activations may go to the host and come back",
               [=](bool on) { synthesis->offload = on; });
  group
      .Choice("--method", "mixed-integer program, local search or both",
              {{"auto", 0}, {"milp", 1}, {"local", 2}},
              [=](int value) { synthesis->method = value; })
      .fallback = "auto";
  group
      .Seconds("--seconds", "time limit of CBC, after which it is killed",
               &synthesis->seconds)
      .fallback = "20";
  group
      .Count("--moves", "of each run of the local search",
             [=](uint32_t n) { synthesis->num_moves = n; })
      .fallback = "by the size";
  group
      .Count("--seed", "of the local search",
             [=](uint32_t n) { synthesis->seed = n; })
      .fallback = "1";
  Group("Output", &options)
      .Text("--out,-o", "FILE.csv",
            "the order; its proof goes to FILE.csv.proof.json. With offloads "
            "FILE.json",
            &synthesis->out);
  AddFormat(&options, &flags->output, /*csv=*/true);
  AddForce(&options, &flags->output);
  AddMessages(&options, &flags->output);
  return options;
}

}  // namespace weir::cli
