// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>
#include <vector>

#include "cli/options/messages.h"
#include "cli/options/output_files.h"
#include "cli/weir/commands.h"
#include "cli/weir/energy_view.h"
#include "cli/weir/several_runs.h"
#include "results/summary.h"
#include "results/views/views.h"

namespace weir::cli {
namespace {

std::string View(const Flags& flags, const Outcome& outcome) {
  const std::vector<Result>& results = outcome.results;
  switch (flags.output.format) {
    case OutputFlags::Format::kJson:
      return results::CompareJson(flags.command, results, outcome.warnings);
    case OutputFlags::Format::kCsv:
      return results::CompareCsv(results);
    case OutputFlags::Format::kTable:
      break;
  }
  return results::CompareTable(results);
}

}  // namespace

int RunCompare(const Flags& flags) {
  const absl::Status possible = CheckEnergy(flags);
  if (!possible.ok()) return PrintError(possible, flags.output);
  const auto work = ResolveAll(flags);
  if (!work.ok()) return PrintError(work.status(), flags.output);
  // Before the first simulation, since some take minutes.
  const int refused =
      work->refused.ok() ? kExitOk : PrintError(work->refused, flags.output);
  Outcome outcome = SimulateAll(work->jobs, flags.flops, flags.output);
  outcome.exit_code = std::max<int>(outcome.exit_code, refused);
  for (const std::string& warning : outcome.warnings) {
    PrintWarning(warning, flags.output);
  }
  if (outcome.results.empty()) return outcome.exit_code;

  int code = outcome.exit_code;
  const absl::StatusOr<std::string> view =
      WithEnergy(flags, View(flags, outcome), outcome.results);
  const absl::Status printed = view.ok() ? PrintResult(*view) : view.status();
  if (!printed.ok()) {
    code = std::max<int>(code, PrintError(printed, flags.output));
  }
  const results::Fastest fastest = results::FindFastest(outcome.results);
  if (!fastest.that_fits) code = std::max<int>(code, kExitNegative);

  Results results;
  for (Result& result : outcome.results) {
    *results.add_results() = std::move(result);
  }
  PrintWarnings(results, flags.output);
  const int traced = fastest.that_fits.value_or(fastest.of_all.value_or(0));
  const absl::Status written =
      WriteOutputs(flags.output, results, &results.results(traced));
  if (!written.ok()) {
    code = std::max<int>(code, PrintError(written, flags.output));
  }
  return code;
}

}  // namespace weir::cli
