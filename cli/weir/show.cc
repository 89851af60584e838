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

namespace weir {
namespace {

using Format = OutputFlags::Format;

std::string View(const Flags& flags, const std::vector<Result>& results) {
  const bool one = results.size() == 1;
  switch (flags.output.format) {
    case Format::kJson:
      return one ? ResultJson(flags.command, results[0])
                 : CompareJson(flags.command, results);
    case Format::kCsv:
      return one ? RanksCsv(results[0]) : CompareCsv(results);
    case Format::kTable:
      break;
  }
  return one ? ResultTable(results[0]) : CompareTable(results);
}

absl::Status TraceResult(const Flags& flags) {
  RETURN_IF_ERROR(CheckTracePath("--output", flags.output.trace, false));
  RETURN_IF_ERROR(CheckOutputs(flags.output, /*folders=*/false));
  ASSIGN_OR_RETURN(const std::vector<Result> results,
                   LoadSelected(flags.name, flags.result));
  const Fastest fastest = FindFastest(results);
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

}  // namespace weir
