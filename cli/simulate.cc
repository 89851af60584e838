// SPDX-License-Identifier: Apache-2.0
#include "sim/simulate.h"

#include "base/status_macros.h"
#include "cli/commands.h"
#include "cli/messages.h"
#include "cli/output_files.h"
#include "cli/overrides.h"
#include "results/compare.h"
#include "results/views.h"

namespace weir {
namespace {

absl::StatusOr<Result> SimulateQuestion(const Flags& flags) {
  RETURN_IF_ERROR(CheckTracePath("--trace", flags.output.trace, true));
  ASSIGN_OR_RETURN(const ResolvedScenario scenario,
                   ResolveFlags(flags.scenario));
  ProgressLine progress(flags.output);
  SimulateOptions options;
  options.keep_timeline =
      !flags.output.out.empty() || !flags.output.trace.empty();
  options.progress = [&](double done) {
    progress.Show(scenario.scenario.schedule(), done);
  };
  return Simulate(scenario, options);
}

std::string View(const Flags& flags, const Result& result) {
  switch (flags.output.format) {
    case OutputFlags::Format::kJson:
      return ResultJson(flags.command, result);
    case OutputFlags::Format::kCsv:
      return RanksCsv(result);
    case OutputFlags::Format::kTable:
      break;
  }
  return ResultTable(result);
}

}  // namespace

int RunSimulate(const Flags& flags) {
  absl::StatusOr<Result> result = SimulateQuestion(flags);
  if (!result.ok()) return PrintError(result.status(), flags.output);
  const absl::Status printed = PrintResult(View(flags, *result));
  if (!printed.ok()) PrintError(printed, flags.output);
  const int verdict = FitsMemory(*result) ? kExitOk : kExitNegative;

  Results results;
  *results.add_results() = *std::move(result);
  PrintWarnings(results, flags.output);
  const absl::Status written =
      WriteOutputs(flags.output, results, &results.results(0));
  if (!written.ok()) return PrintError(written, flags.output);
  return printed.ok() ? verdict : kExitUsage;
}

}  // namespace weir
