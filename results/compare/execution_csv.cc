// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "results/compare/execution_comparison.h"

namespace weir::results {

std::string ExecutionCsv(const ExecutionComparison& comparison) {
  std::string out =
      "rank,action,predicted_start_seconds,predicted_seconds,"
      "measured_start_seconds,measured_seconds,start_error_seconds,"
      "duration_error\n";
  for (const ComparedAction& action : comparison.actions) {
    absl::StrAppend(
        &out, action.rank, ",", ActionText(action.measured), ",",
        ShortestNumber(action.predicted.start_seconds), ",",
        ShortestNumber(action.predicted.seconds()), ",",
        ShortestNumber(action.measured.start_seconds), ",",
        ShortestNumber(action.measured.seconds()), ",",
        ShortestNumber(action.start_error_seconds()), ",",
        action.has_duration() ? ShortestNumber(action.duration_error()) : "",
        "\n");
  }
  return out;
}

}  // namespace weir::results
