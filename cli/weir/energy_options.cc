// SPDX-License-Identifier: Apache-2.0
// "energy".
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/options/add_option.h"
#include "cli/options/shared_options.h"
#include "cli/weir/weir_app.h"

namespace weir::cli {
namespace {

// Parses comma-separated numbers above 0.
absl::StatusOr<std::vector<double>> ParseFactors(const std::string& text) {
  std::vector<double> factors;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    ASSIGN_OR_RETURN(factors.emplace_back(), ParsePositive(part));
  }
  return factors;
}

void AddPipelineOfProfile(CLI::App* app, EnergyFlags* energy) {
  app->option_defaults()->group("Pipeline");
  AddText(app, "--schedule", "SCHEDULE",
          "schedule with a flush: name (see weir schedule list), or a file in "
          "PyTorch's CSV format",
          &energy->schedule)
      ->default_str(energy->schedule);
  AddCount(app, "--microbatches", "microbatches of an iteration",
           &energy->num_microbatches)
      ->default_str(absl::StrCat(energy->num_microbatches));
  AddCount(app, "--chunks", "stages per rank", &energy->num_chunks)
      ->default_str(absl::StrCat(energy->num_chunks));
  AddOption(app, "--stragglers", "FACTOR,...",
            "iteration times of a slower replica, relative to the highest "
            "clocks: 1,1.05,1.1",
            ParseFactors, &energy->stragglers)
      ->join(',');
}

void AddPower(CLI::App* app, EnergyFlags* energy) {
  app->option_defaults()->group("Power");
  AddOption(app, "--blocking-power", "WATTS",
            "power of a GPU that waits for another one: 83.64", ParsePositive,
            &energy->blocking_watts)
      ->required();
  AddOption(app, "--gpus-per-stage", "N",
            "GPUs of a stage, each with the profile's energy: tensor "
            "parallelism",
            ParsePositive, &energy->gpus_per_stage)
      ->default_str("1");
  AddOption(app, "--time-scale", "FACTOR",
            "multiplies the profile's times and energies", ParsePositive,
            &energy->time_scale)
      ->default_str("1");
  AddOption(app, "--unit-seconds", "SECONDS",
            "round times of passes down to multiples of this (before "
            "--time-scale), as Perseus does with 0.001",
            ParseTimeLimit, &energy->unit_seconds)
      ->default_str("exact");
}

}  // namespace

void AddEnergyCommand(CLI::App* app, CommandLine* line) {
  Flags* flags = &line->flags;
  EnergyFlags* energy = &flags->energy;
  CLI::App* command = AddWeirCommand(
      app, "energy",
      "Plans a clock for every pass: less energy in the same time.",
      {"energy profile.csv --blocking-power 83.64 --microbatches 12",
       "energy profile.csv --blocking-power 83.64 --microbatches 48 "
       "--stragglers 1.05,1.2 --out clocks.csv"},
      RunEnergy, line);
  AddName(command, "PROFILE.csv",
          "measured passes: columns stage, instruction, frequency (MHz), time "
          "(seconds) and energy (joules of one GPU), see docs/energy.md",
          &flags->name);
  AddPipelineOfProfile(command, energy);
  AddPower(command, energy);
  command->option_defaults()->group("Frontier");
  AddText(command, "--deadlines", "SECONDS,...|FILE.csv",
          "iteration times to plan for; a file has a column time or "
          "deadline_seconds",
          &energy->deadlines)
      ->join(',')
      ->default_str("evenly spaced");
  AddCount(command, "--points", "number of evenly spaced deadlines",
           &energy->num_points)
      ->default_str(absl::StrCat(energy->num_points));
  AddOption(command, "--power-cap", "WATTS",
            "also find the fastest plan whose GPUs take at most this on "
            "average: of a node or rack, its power less that of other "
            "components, divided by its GPUs",
            ParsePositive, &energy->power_cap);
  AddFormat(command, /*csv=*/true, &flags->output);
  AddReport(command, "--report", "the frontier and the clocks of stages",
            &flags->output.report);
  AddText(command, "--out", "FILE.csv",
          "write the clocks of the fastest plan, or of the one for a single "
          "--deadlines",
          &flags->output.out)
      ->group("Output");
  AddText(command, "--costs", "FILE.textproto",
          "write the times of passes, for weir simulate --costs",
          &energy->costs)
      ->group("Output");
  AddOption(command, "--clock", "MHZ", "clock of --costs", ParsePositive,
            &energy->clock)
      ->default_str("the highest")
      ->group("Output");
  AddForce(command, &flags->output.force);
}

}  // namespace weir::cli
