// SPDX-License-Identifier: Apache-2.0
// Shows stored results as a table, JSON, CSV or a trace.
#include <vector>

#include "base/status_macros.h"
#include "cli/options/messages.h"
#include "cli/options/output_files.h"
#include "cli/weir/commands.h"
#include "cli/weir/stored_results.h"
#include "results/summary.h"
#include "results/views/views.h"

namespace weir::cli {
namespace {

using Format = OutputFlags::Format;

std::string View(const Flags& flags, const std::vector<Result>& results) {
  const bool one = results.size() == 1;
  switch (flags.output.format) {
    case Format::kJson:
      return one ? results::ResultJson(flags.command, results[0])
                 : results::CompareJson(flags.command, results);
    case Format::kCsv:
      return one ? results::RanksCsv(results[0]) : results::CompareCsv(results);
    case Format::kTable:
      break;
  }
  return one ? results::ResultTable(results[0])
             : results::CompareTable(results);
}

absl::Status TraceResult(const Flags& flags) {
  RETURN_IF_ERROR(CheckTracePath("--output", flags.output.trace, false));
  RETURN_IF_ERROR(CheckOutputs(flags.output, /*folders=*/false));
  ASSIGN_OR_RETURN(const std::vector<Result> results,
                   LoadSelected(flags.name, flags.result));
  const results::Fastest fastest = results::FindFastest(results);
  const int chosen = fastest.that_fits.value_or(fastest.of_all.value_or(0));
  return WriteTrace(flags.output.trace, results[chosen], flags.output);
}

}  // namespace

int RunShow(const Flags& flags) {
  const auto results = LoadSelected(flags.name, flags.result);
  if (!results.ok()) return PrintError(results.status(), flags.output);
  const absl::Status printed = PrintResult(View(flags, *results));
  return printed.ok() ? kExitOk : PrintError(printed, flags.output);
}

int RunTrace(const Flags& flags) {
  const absl::Status status = TraceResult(flags);
  return status.ok() ? kExitOk : PrintError(status, flags.output);
}

}  // namespace weir::cli
