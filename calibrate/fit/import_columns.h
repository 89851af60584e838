// SPDX-License-Identifier: Apache-2.0
// Columns that tables of measurements have in common.
#ifndef WEIR_CALIBRATE_FIT_IMPORT_COLUMNS_H_
#define WEIR_CALIBRATE_FIT_IMPORT_COLUMNS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/csv.h"

namespace weir::calibrate {

// All return InvalidArgument with file, line, column, the value found and the
// value expected.

// Refuses columns that are neither known nor times, and suggests the column
// that was probably meant. Those whose names begin with "note" are ignored.
absl::Status CheckColumns(const CsvTable& table,
                          std::vector<std::string> known);

// Returns the times in the first of the columns latency_ms, latency_us and
// seconds that exists, in seconds.
absl::StatusOr<std::vector<double>> ReadSeconds(const CsvTable& table);

// Returns a column of sizes from 1 to 1e9.
absl::StatusOr<std::vector<double>> ReadSizes(const CsvTable& table,
                                              absl::string_view name);

// Returns the text that all rows have in a column; empty without this column.
absl::StatusOr<std::string> ReadCommonText(const CsvTable& table,
                                           absl::string_view name);

// Returns the number format in the column type or dtype, "bf16"; empty without
// such a column.
absl::StatusOr<std::string> ReadFormat(const CsvTable& table);

// Returns a line with a warning if a row performs its FLOPs in less time than
// at the peak rate of its format ("": 16 bits), else "". `lines` are the rows'
// numbers in the file. Requires: all have the same length.
std::string WarnAbovePeak(absl::Span<const double> flops,
                          absl::Span<const double> seconds,
                          absl::Span<const int> lines, double peak_flops,
                          absl::string_view format);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_FIT_IMPORT_COLUMNS_H_
