// SPDX-License-Identifier: Apache-2.0
// Writes reports of stored results, and of scenarios that it simulates.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cli/options/messages.h"
#include "cli/options/output_files.h"
#include "cli/weir/commands.h"
#include "cli/weir/several_runs.h"
#include "cli/weir/stored_results.h"
#include "results/store.h"

namespace weir::cli {
namespace {

bool IsResult(const std::string& path) {
  return absl::EndsWith(path, ".pb") || results::IsResultFile(path);
}

absl::StatusOr<std::vector<Result>> Load(const Flags& flags) {
  if (HasScenarioFlags(flags.scenario)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "command line: ", flags.scenario.scenario,
        " is a result, expected no options of a scenario with it"));
  }
  RETURN_IF_ERROR(CheckOutputs(flags.output, /*folders=*/false));
  ASSIGN_OR_RETURN(std::vector<Result> results,
                   LoadSelected(flags.scenario.scenario, flags.result));
  if (flags.flops.empty()) return results;
  for (Result& result : results) result.set_flops_formula(flags.flops);
  return results;
}

int WriteAll(std::vector<Result> all, const OutputFlags& output) {
  Results results;
  for (Result& result : all) *results.add_results() = std::move(result);
  PrintWarnings(results, output);
  const absl::Status written = WriteReport(output, results);
  return written.ok() ? kExitOk : PrintError(written, output);
}

int SimulateAndWrite(const Flags& flags) {
  if (!flags.result.empty()) {
    return PrintError(
        absl::InvalidArgumentError(
            "command line: --result needs a file written by --out"),
        flags.output);
  }
  const auto work = ResolveAll(flags);
  if (!work.ok()) return PrintError(work.status(), flags.output);
  const int refused =
      work->refused.ok() ? kExitOk : PrintError(work->refused, flags.output);
  Outcome outcome = SimulateAll(work->jobs, flags.flops, flags.output);
  for (const std::string& warning : outcome.warnings) {
    PrintWarning(warning, flags.output);
  }
  const int code = std::max(outcome.exit_code, refused);
  if (outcome.results.empty()) return code;
  return std::max(code, WriteAll(std::move(outcome.results), flags.output));
}

}  // namespace

int RunReport(const Flags& flags) {
  const absl::Status named = CheckReportPath("--output", flags.output.report);
  if (!named.ok()) return PrintError(named, flags.output);
  if (!IsResult(flags.scenario.scenario)) return SimulateAndWrite(flags);
  absl::StatusOr<std::vector<Result>> results = Load(flags);
  return results.ok() ? WriteAll(*std::move(results), flags.output)
                      : PrintError(results.status(), flags.output);
}

}  // namespace weir::cli
