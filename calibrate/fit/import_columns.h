// SPDX-License-Identifier: Apache-2.0
// Columns that tables of measurements have in common.
#ifndef WEIR_CALIBRATE_FIT_IMPORT_COLUMNS_H_
#define WEIR_CALIBRATE_FIT_IMPORT_COLUMNS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/csv.h"

namespace weir::calibrate {

// All return InvalidArgument with file, line, column, the value found and the
// value expected.

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

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_FIT_IMPORT_COLUMNS_H_
