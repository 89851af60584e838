// SPDX-License-Identifier: Apache-2.0
#include "sim/simulate.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cli/options/messages.h"
#include "cli/options/output_files.h"
#include "cli/options/overrides.h"
#include "cli/weir/commands.h"
#include "cli/weir/emit.h"
#include "cli/weir/energy_view.h"
#include "plan/sweep/fast_estimate_view.h"
#include "results/draw/terminal_timeline.h"
#include "results/summary.h"
#include "results/views/views.h"
#include "sim/fast/fast_simulator.h"
#include "sim/report/memory_interval.h"

namespace weir::cli {
namespace {

absl::StatusOr<Result> SimulateRequest(const Flags& flags) {
  RETURN_IF_ERROR(CheckOutputs(flags.output, /*folders=*/true));
  ASSIGN_OR_RETURN(const scenarios::ResolvedScenario scenario,
                   ResolveFlags(flags.scenario, &flags.output));
  RETURN_IF_ERROR(CheckEmitted(scenario, flags.output));
  RETURN_IF_ERROR(CheckEnergyOf(flags, scenario));
  ProgressLine progress(flags.output);
  sim::SimulateOptions options;
  options.keep_timeline =
      NeedsTimeline(flags.output) || flags.step_energy.is_measured();
  options.progress = [&](double done) {
    progress.Show(scenario.scenario.schedule(), done);
  };
  ASSIGN_OR_RETURN(Result result, sim::Simulate(scenario, options));
  if (!flags.flops.empty()) result.set_flops_formula(flags.flops);
  RETURN_IF_ERROR(WriteEmitted(scenario, flags.output));
  return result;
}

std::string View(const Flags& flags, const Result& result) {
  switch (flags.output.format) {
    case OutputFlags::Format::kJson:
      return results::ResultJson(flags.command, result);
    case OutputFlags::Format::kCsv:
      return results::RanksCsv(result);
    case OutputFlags::Format::kTable:
      break;
  }
  return results::ResultTable(result);
}

// Returns the timeline for standard output.
absl::StatusOr<std::string> TimelineView(const Flags& flags,
                                         const Result& result) {
  ASSIGN_OR_RETURN(const results::TimelineRows rows,
                   results::RowsOfResult(result));
  results::TerminalStyle style;
  style.width = LayoutOf(flags.output).width;
  style.unicode = IsUtf8Locale();
  style.color = UsesColorOnStdout(flags.output);
  return absl::StrCat("\n", results::TerminalTimeline(rows, style));
}

// Refuses options that only the full simulation supports.
absl::Status CheckFast(const Flags& flags) {
  const OutputFlags& output = flags.output;
  std::string asked;
  if (!output.trace.empty()) asked = "--trace";
  if (!output.out.empty()) asked = "--out";
  if (!output.report.empty()) asked = "--report";
  if (output.timeline) asked = "--timeline";
  if (!flags.flops.empty()) asked = "--flops";
  if (!flags.step_energy.power.empty()) asked = "--energy";
  if (output.format == OutputFlags::Format::kCsv) asked = "--format csv";
  if (asked.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("weir simulate: ", asked,
                   " needs every GPU and microbatch, found --method fast, "
                   "expected --method full"));
}

absl::Status CheckTimeline(const OutputFlags& output) {
  if (!output.timeline || output.format == OutputFlags::Format::kTable) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "command line: --timeline is given with --format json or csv, expected "
      "--format table");
}

// Returns the used fraction of memory, relative to the GPU with the smallest
// memory.
double MostUsedPart(const scenarios::ResolvedScenario& scenario,
                    const sim::FastEstimate& run) {
  double least = scenario.device.memory_bytes().value();
  for (const DeviceProfile& other : scenario.other_devices) {
    least = std::min(least, other.memory_bytes().value());
  }
  double most = 0;
  for (const double bytes : run.peak_bytes) most = std::max(most, bytes);
  return scenario.given_costs ? 0 : most / least;
}

int RunFast(const Flags& flags) {
  const absl::Status possible = CheckFast(flags);
  if (!possible.ok()) return PrintError(possible, flags.output);
  const absl::StatusOr<scenarios::ResolvedScenario> scenario =
      ResolveFlags(flags.scenario, &flags.output);
  if (!scenario.ok()) return PrintError(scenario.status(), flags.output);
  const absl::Status emitted = CheckEmitted(*scenario, flags.output);
  if (!emitted.ok()) return PrintError(emitted, flags.output);
  // Kept for the next estimate of the process (weir serve).
  static auto& simulator = *new sim::FastSimulator();
  const absl::StatusOr<sim::FastEstimate> run = simulator.Estimate(*scenario);
  if (!run.ok()) return PrintError(run.status(), flags.output);
  const absl::Status printed =
      PrintResult(flags.output.format == OutputFlags::Format::kJson
                      ? plan::FastEstimateJson(flags.command, *scenario, *run)
                      : plan::FastEstimateTable(*scenario, *run));
  if (!printed.ok()) return PrintError(printed, flags.output);
  for (const std::string& warning : scenario->warnings) {
    PrintWarning(warning, flags.output);
  }
  if (const double part = MostUsedPart(*scenario, *run);
      run->fits_memory && !scenario->given_costs &&
      part > 1 - sim::MemoryMargin(*scenario,
                                   scenario->device.memory_bytes().value(),
                                   scenario->placement.num_gpus())) {
    PrintWarning(sim::MarginWarning(part), flags.output);
  }
  const absl::Status written = WriteEmitted(*scenario, flags.output);
  if (!written.ok()) return PrintError(written, flags.output);
  return run->fits_memory ? kExitOk : kExitNegative;
}

}  // namespace

int RunSimulate(const Flags& flags) {
  absl::Status possible = CheckTimeline(flags.output);
  possible.Update(CheckEnergy(flags, /*with_timeline=*/true));
  if (!possible.ok()) return PrintError(possible, flags.output);
  if (flags.fast) return RunFast(flags);
  absl::StatusOr<Result> result = SimulateRequest(flags);
  if (!result.ok()) return PrintError(result.status(), flags.output);
  absl::StatusOr<std::string> timeline = "";
  if (flags.output.timeline) timeline = TimelineView(flags, *result);
  const absl::StatusOr<std::string> view =
      WithEnergy(flags, View(flags, *result), {&*result, 1});
  if (!view.ok()) return PrintError(view.status(), flags.output);
  absl::Status printed = PrintResult(*view, timeline.value_or(""));
  printed.Update(timeline.status());
  if (!printed.ok()) PrintError(printed, flags.output);
  const int verdict = results::FitsMemory(*result) ? kExitOk : kExitNegative;

  Results results;
  *results.add_results() = *std::move(result);
  PrintWarnings(results, flags.output);
  const absl::Status written =
      WriteOutputs(flags.output, results, &results.results(0));
  if (!written.ok()) return PrintError(written, flags.output);
  return printed.ok() ? verdict : kExitUsage;
}

}  // namespace weir::cli
