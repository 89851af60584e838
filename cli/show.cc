// SPDX-License-Identifier: Apache-2.0
// Old results again: as a table, JSON, CSV or a trace.
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "cli/commands.h"
#include "cli/messages.h"
#include "cli/output_files.h"
#include "results/compare.h"
#include "results/store.h"
#include "results/views.h"

namespace weir {
namespace {

using Format = OutputFlags::Format;

// All results of a file, or those whose schedule, row or name is --result.
absl::StatusOr<std::vector<Result>> LoadSelected(const Flags& flags) {
  ASSIGN_OR_RETURN(Results results, LoadResults(flags.name));
  std::vector<Result> selected;
  std::vector<std::string> names;
  for (Result& result : *results.mutable_results()) {
    names.push_back(RowName(result));
    if (flags.result.empty() || flags.result == result.schedule() ||
        flags.result == result.name() || flags.result == names.back()) {
      selected.push_back(std::move(result));
    }
  }
  if (!selected.empty()) return selected;
  Problems problems(flags.name);
  if (names.empty()) {
    problems.Add("", "holds no result");
  } else {
    problems.Add("--result", absl::StrCat("is ", flags.result, ", expected ",
                                          absl::StrJoin(names, ", ")));
  }
  return problems.ToStatus();
}

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
  ASSIGN_OR_RETURN(const std::vector<Result> results, LoadSelected(flags));
  const Fastest fastest = FindFastest(results);
  const int chosen = fastest.that_fits.value_or(fastest.of_all.value_or(0));
  return WriteTrace(flags.output.trace, results[chosen], flags.output);
}

}  // namespace

int RunShow(const Flags& flags) {
  const auto results = LoadSelected(flags);
  if (!results.ok()) return PrintError(results.status(), flags.output);
  const absl::Status printed = PrintResult(View(flags, *results));
  return printed.ok() ? kExitOk : PrintError(printed, flags.output);
}

int RunTrace(const Flags& flags) {
  const absl::Status status = TraceResult(flags);
  return status.ok() ? kExitOk : PrintError(status, flags.output);
}

}  // namespace weir
