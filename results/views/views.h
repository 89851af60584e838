// SPDX-License-Identifier: Apache-2.0
// Views of results: pure functions, so an old result can be shown again.
#ifndef WEIR_RESULTS_VIEWS_VIEWS_H_
#define WEIR_RESULTS_VIEWS_VIEWS_H_

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "results/result.pb.h"

namespace weir::results {

// Returns the table of one result: shape, times, worst rank, limit.
std::string ResultTable(const Result& result);

// Returns one row per result, the excess of those that do not fit, and a line
// that names the limit of the fastest one that fits.
std::string CompareTable(std::span<const Result> results);
// Returns the names of its columns, for --columns.
std::vector<std::string> CompareColumns();
// Returns those of the table of ranks of ResultTable.
std::vector<std::string> RankColumns();

// Return the envelope {"tool", "version", "command", "config",
// "result"|"results", "warnings"} without timelines. Quantities are numbers,
// never strings; a number that is not finite becomes null and a warning.
// "config" is the resolved scenario as textproto, for a comparison the list of
// them. `warnings` are additional ones.
std::string ResultJson(absl::string_view command, const Result& result);
std::string CompareJson(absl::string_view command,
                        std::span<const Result> results,
                        const std::vector<std::string>& warnings = {});

// Return a header line and one line per rank (simulate) or per result
// (compare).
std::string RanksCsv(const Result& result);
std::string CompareCsv(std::span<const Result> results);

}  // namespace weir::results

#endif  // WEIR_RESULTS_VIEWS_VIEWS_H_
