// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/import_columns.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

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

}  // namespace

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

}  // namespace weir::calibrate
