// SPDX-License-Identifier: Apache-2.0
// A table of measured runs, one per row, with weir's names of columns.
#ifndef WEIR_RESULTS_COMPARE_MEASURED_TABLE_H_
#define WEIR_RESULTS_COMPARE_MEASURED_TABLE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "results/compare/measured_columns.pb.h"

namespace weir::results {

struct MeasuredField {
  std::string column;  // weir's name
  std::string source;  // the file's name for it, for messages
  std::string text;    // never empty: empty fields are left out
};

struct MeasuredRow {
  int line = 0;
  std::vector<MeasuredField> fields;
};

struct MeasuredTable {
  std::string label;  // the file
  std::vector<MeasuredRow> rows;
  int num_left_out = 0;  // by conditions
};

// Reads a table; columns that `columns` does not mention keep their names.
// Returns InvalidArgument with all problems at once: bad CSV, columns that
// `columns` mentions but the file does not have, invalid patterns, and rows
// with two values for one column. Scaled fields that are not numbers are kept.
absl::StatusOr<MeasuredTable> ReadMeasuredTable(absl::string_view label,
                                                absl::string_view text,
                                                const MeasuredColumns& columns);

// Parses "tp=2,pp=4|8": each column has a value, or one of several. Returns
// InvalidArgument for a part without "column=".
absl::StatusOr<std::vector<MeasuredColumns::Condition>> ParseConditions(
    absl::string_view text);

}  // namespace weir::results

#endif  // WEIR_RESULTS_COMPARE_MEASURED_TABLE_H_
