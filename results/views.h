// SPDX-License-Identifier: Apache-2.0
// Views of results: pure functions, so that an old result can be shown again.
#ifndef WEIR_RESULTS_VIEWS_H_
#define WEIR_RESULTS_VIEWS_H_

#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "results/result.pb.h"

namespace weir {

// The table of one result: what it is, the times, the worst rank, what limits.
std::string ResultTable(const Result& result);

// One row per result; what does not fit is marked and by how much; one line
// under it says what limits the fastest that fits.
std::string CompareTable(std::span<const Result> results);

// The envelope {"tool", "version", "command", "config", "result"|"results",
// "warnings"} without timelines. Numbers, never strings, for quantities; one
// that is not finite is null and a warning. "config" is the resolved scenario
// as textproto, for a comparison the list of them. `warnings` are further ones.
std::string ResultJson(absl::string_view command, const Result& result);
std::string CompareJson(absl::string_view command,
                        std::span<const Result> results,
                        const std::vector<std::string>& warnings = {});

// One line per rank (simulate) or per result (compare), with a header line.
std::string RanksCsv(const Result& result);
std::string CompareCsv(std::span<const Result> results);

}  // namespace weir

#endif  // WEIR_RESULTS_VIEWS_H_
