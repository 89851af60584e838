// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/import_columns.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/problems.h"
#include "base/spelling.h"
#include "base/status_macros.h"
#include "base/text.h"

namespace weir::calibrate {
namespace {

struct TimeColumn {
  const char* name;
  double seconds;  // seconds per unit
};
constexpr TimeColumn kTimes[] = {
    {"latency_ms", 1e-3}, {"latency_us", 1e-6}, {"seconds", 1}};
constexpr double kMaxSize = 1e9;
constexpr double kMaxSeconds = 1e4;
// Columns as other programs name them, with the names that are read.
constexpr std::pair<const char*, const char*> kOtherNames[] = {
    {"format", "dtype"},       {"precision", "dtype"},
    {"datatype", "dtype"},     {"data_type", "dtype"},
    {"time_ms", "latency_ms"}, {"time_us", "latency_us"}};

std::string Suggestion(const std::string& name,
                       const std::vector<std::string>& known) {
  for (const auto& [other, column] : kOtherNames) {
    if (name == other) return absl::StrCat("; did you mean ", column, "?");
  }
  return DidYouMean(name, known);
}

}  // namespace

absl::Status CheckColumns(const CsvTable& table,
                          std::vector<std::string> known) {
  for (const TimeColumn& time : kTimes) known.emplace_back(time.name);
  Problems problems(table.label());
  for (const std::string& name : table.header()) {
    if (absl::StartsWith(name, "note") ||
        std::find(known.begin(), known.end(), name) != known.end()) {
      continue;
    }
    problems.AddAt(1, name,
                   absl::StrCat("is an unknown column, expected one of ",
                                absl::StrJoin(known, ", "),
                                " or a name that begins with note",
                                Suggestion(name, known)));
  }
  return problems.ToStatus();
}

absl::StatusOr<std::vector<double>> ReadSeconds(const CsvTable& table) {
  for (const TimeColumn& time : kTimes) {
    if (!table.HasColumn(time.name)) continue;
    ASSIGN_OR_RETURN(const CsvColumn column, table.Column(time.name));
    ASSIGN_OR_RETURN(
        std::vector<double> seconds,
        column.Numbers(1e-9 / time.seconds, kMaxSeconds / time.seconds));
    for (double& value : seconds) value *= time.seconds;
    return seconds;
  }
  return absl::InvalidArgumentError(
      absl::StrCat(table.label(),
                   ":1: has no column with times, expected one of latency_ms, "
                   "latency_us, seconds"));
}

absl::StatusOr<std::vector<double>> ReadSizes(const CsvTable& table,
                                              absl::string_view name) {
  ASSIGN_OR_RETURN(const CsvColumn column, table.Column(name));
  return column.Numbers(1, kMaxSize);
}

absl::StatusOr<std::string> ReadCommonText(const CsvTable& table,
                                           absl::string_view name) {
  if (!table.HasColumn(name) || table.num_rows() == 0) return "";
  ASSIGN_OR_RETURN(const CsvColumn column, table.Column(name));
  for (int row = 1; row < table.num_rows(); ++row) {
    if (column.Text(row) == column.Text(0)) continue;
    return column.Error(row, absl::StrCat("expected \"", column.Text(0),
                                          "\" as in the previous rows"));
  }
  return column.Text(0);
}

absl::StatusOr<std::string> ReadFormat(const CsvTable& table) {
  return ReadCommonText(table, table.HasColumn("type") ? "type" : "dtype");
}

std::string WarnAbovePeak(absl::Span<const double> flops,
                          absl::Span<const double> seconds,
                          absl::Span<const int> lines, double peak_flops,
                          absl::string_view format) {
  int num_above = 0, worst = 0;
  double most = 0;
  for (size_t row = 0; row < flops.size(); ++row) {
    const double rate = flops[row] / seconds[row];
    if (rate > peak_flops) ++num_above;
    if (rate <= most) continue;
    most = rate;
    worst = lines[row];
  }
  if (num_above == 0) return "";
  return absl::StrFormat(
      "warning: %d of %d rows are faster than the peak of %.4g FLOP/s in %s: "
      "%.4g FLOP/s in line %d, expected another dtype or unit of time\n",
      num_above, flops.size(), peak_flops,
      format.empty() ? "16 bits" : EscapeLine(format), most, worst);
}

}  // namespace weir::calibrate
