// SPDX-License-Identifier: Apache-2.0
// "weir validate --replay REPLAY --against RESULT".
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/files.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "cli/options/messages.h"
#include "cli/options/output_files.h"
#include "cli/weir/commands.h"
#include "cli/weir/document_report.h"
#include "cli/weir/envelope.h"
#include "cli/weir/stored_results.h"
#include "results/compare/execution_comparison.h"
#include "results/compare/measured_timeline.h"
#include "results/trace/trace.h"

namespace weir::cli {
namespace {

struct Sides {
  Result predicted, measured;
};

// Returns true if an option defines what is simulated.
bool AsksSimulator(const ScenarioFlags& flags) {
  return flags.overrides.ByteSizeLong() > 0 || !flags.costs.empty() ||
         !flags.schedules.empty() || flags.sequence_parallel ||
         flags.flash_attention || flags.dropout || flags.fp32_gradients ||
         flags.fully_sharded || flags.distributed_optimizer;
}

absl::Status CheckReplayFlags(const Flags& flags) {
  const MeasuredFlags& measured = flags.measured;
  Problems problems("command line");
  if (measured.against.empty()) {
    problems.Add("--against",
                 "is missing, expected a file written by weir simulate --out");
  }
  const auto refuse = [&](bool given, const char* flag) {
    if (given) problems.Add(flag, "requires --measured, but --replay is given");
  };
  refuse(!measured.columns.empty(), "--columns");
  refuse(!measured.where.empty(), "--where");
  refuse(!flags.scenario.scenario.empty(), "--scenario");
  if (AsksSimulator(flags.scenario)) {
    problems.Add("",
                 "options of the simulation require --measured: the result in "
                 "--against is already simulated");
  }
  RETURN_IF_ERROR(problems.ToStatus());
  return CheckOutputs(flags.output, /*folders=*/false);
}

// Loads the result that --result names. A file with one result needs no name:
// --result then names one of --against.
absl::StatusOr<Result> LoadMeasured(const Flags& flags) {
  const std::string& path = flags.measured.replay;
  if (absl::EndsWith(path, ".csv")) {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
    return results::ReadMeasuredTimeline(path, text);
  }
  ASSIGN_OR_RETURN(const std::vector<Result> all, LoadSelected(path, ""));
  return all.size() == 1 ? all.front() : LoadOne(path, flags.result);
}

absl::StatusOr<Sides> LoadSides(const Flags& flags) {
  RETURN_IF_ERROR(CheckReplayFlags(flags));
  Sides sides;
  ASSIGN_OR_RETURN(sides.measured, LoadMeasured(flags));
  ASSIGN_OR_RETURN(sides.predicted,
                   LoadOne(flags.measured.against, flags.result));
  return sides;
}

std::string JsonOf(const Flags& flags,
                   const results::ExecutionComparison& comparison) {
  return Envelope(flags.command, "{}", results::ExecutionJson(comparison),
                  comparison.warnings);
}

std::string View(const Flags& flags,
                 const results::ExecutionComparison& comparison) {
  switch (flags.output.format) {
    case OutputFlags::Format::kJson:
      return JsonOf(flags, comparison);
    case OutputFlags::Format::kCsv:
      return results::ExecutionCsv(comparison);
    case OutputFlags::Format::kTable:
      break;
  }
  return results::ExecutionTable(comparison, flags.measured.all);
}

absl::Status Show(const Flags& flags, const Sides& sides,
                  const results::ExecutionComparison& comparison) {
  RETURN_IF_ERROR(PrintResult(View(flags, comparison)));
  Result runs[] = {sides.predicted, sides.measured};
  runs[0].set_schedule(absl::StrCat(runs[0].schedule(), ", predicted"));
  runs[1].set_schedule(absl::StrCat(runs[1].schedule(), ", measured"));
  RETURN_IF_ERROR(WriteDocumentReport(
      flags.output, [&] { return JsonOf(flags, comparison); }, runs));
  if (flags.output.trace.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(
      const results::TwoRows rows,
      results::PutUnderEachOther(flags.measured.against, sides.predicted,
                                 flags.measured.replay, sides.measured));
  return WriteTwoRows(flags.output.trace, rows, flags.output);
}

// Returns "2 %", or "2 % (memory: 0.5 %)".
std::string Describe(const results::ExecutionTolerance& tolerance) {
  std::string memory = absl::StrFormat("%.6g %%", 100 * tolerance.memory);
  if (tolerance.makespan == tolerance.memory) return memory;
  if (tolerance.makespan == 0) return absl::StrCat("(memory) ", memory);
  return absl::StrFormat("%.6g %% (memory: %s)", 100 * tolerance.makespan,
                         memory);
}

}  // namespace

int RunValidateReplay(const Flags& flags) {
  const absl::StatusOr<Sides> sides = LoadSides(flags);
  if (!sides.ok()) return PrintError(sides.status(), flags.output);
  const absl::StatusOr<results::ExecutionComparison> comparison =
      results::CompareExecution(flags.measured.against, sides->predicted,
                                flags.measured.replay, sides->measured);
  if (!comparison.ok()) return PrintError(comparison.status(), flags.output);
  const absl::Status shown = Show(flags, *sides, *comparison);
  if (!shown.ok()) return PrintError(shown, flags.output);
  for (const std::string& warning : comparison->warnings) {
    PrintWarning(warning, flags.output);
  }
  results::ExecutionTolerance tolerance;
  tolerance.makespan = flags.measured.tolerance;
  tolerance.memory = flags.measured.memory_tolerance > 0
                         ? flags.measured.memory_tolerance
                         : tolerance.makespan;
  const std::vector<std::string> above =
      results::ErrorsAbove(*comparison, tolerance);
  if (above.empty()) return kExitOk;
  PrintWarning(absl::StrCat("above the tolerance of ", Describe(tolerance),
                            ": ", absl::StrJoin(above, ", ")),
               flags.output);
  return kExitNegative;
}

}  // namespace weir::cli
