// SPDX-License-Identifier: Apache-2.0
// "simulate" and "compare"; "show" and "trace" of stored results.
#include "cli/options/add_option.h"
#include "cli/options/shared_options.h"
#include "cli/weir/weir_app.h"

namespace weir::cli {

void AddRunCommands(CLI::App* app, CommandLine* line) {
  Flags* flags = &line->flags;
  AddSimulate(
      AddWeirCommand(
          app, "simulate",
          "Simulates training with one schedule: time, memory, bottleneck.",
          {"simulate pipedream-2bw-gpt-2.2b --schedule 1f1b",
           "simulate --schedule gpipe --costs f=1,b=2,c=0.1 --pp 4 "
           "--microbatches 8"},
          RunSimulate, line),
      flags);
  CLI::App* compare = AddWeirCommand(
      app, "compare",
      "Simulates several schedules of one scenario side by side.",
      {"compare pipedream-2bw-gpt-2.2b --schedule gpipe,pipedream-2bw",
       "compare --schedule gpipe,1f1b --costs f=1,b=2 --pp 4 "
       "--microbatches 8 --trace out/"},
      RunCompare, line);
  AddRun(compare, /*several=*/true, flags);
  AddPrediction(compare, /*several=*/true, flags);
  AddSwitch(compare, "--slack",
            "also show how much delay passes and transfers absorb before the "
            "run ends later (weir slack)",
            &flags->output.slack)
      ->group("Output");
}

void AddShowCommand(CLI::App* app, CommandLine* line) {
  Flags* flags = &line->flags;
  CLI::App* show = AddWeirCommand(
      app, "show", "Re-displays a saved result.",
      {"show out/compare.pb", "show out/compare.pb --result gpipe"}, RunShow,
      line);
  AddName(show, "RESULT.pb", "file written by --out", &flags->name);
  AddText(show, "--result", "NAME", "show only this schedule or name",
          &flags->result)
      ->group("Output")
      ->default_str("all");
  AddFormat(show, /*csv=*/true, &flags->output);
}

void AddTraceCommand(CLI::App* app, CommandLine* line) {
  Flags* flags = &line->flags;
  CLI::App* trace = AddWeirCommand(
      app, "trace", "Writes the timeline of a saved result for a trace viewer.",
      {"trace out/compare.pb -o out/fastest.pftrace",
       "trace out/compare.pb --result gpipe -o out/gpipe.json"},
      RunTrace, line);
  AddName(trace, "RESULT.pb", "file written by --out", &flags->name);
  trace->option_defaults()->group("Output");
  AddText(trace, "--result", "NAME", "schedule or name of the result",
          &flags->result)
      ->default_str("the fastest schedule that fits");
  AddText(trace, "-o,--output", "FILE",
          ".pftrace (ui.perfetto.dev), .json or .svg", &flags->output.trace)
      ->required();
  AddTraceSelection(trace, &flags->output.traced);
  AddForce(trace, &flags->output.force);
}

}  // namespace weir::cli
