// SPDX-License-Identifier: Apache-2.0
// A table of measured runs, one a row, under weir's names of columns.
#ifndef WEIR_RESULTS_MEASURED_TABLE_H_
#define WEIR_RESULTS_MEASURED_TABLE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "results/measured_columns.pb.h"

namespace weir {

struct MeasuredField {
  std::string column;  // weir's name
  std::string source;  // the file's name of it, for messages
  std::string text;    // never empty: an empty field is not there
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
// InvalidArgument, all at once, for bad CSV, columns that `columns` mentions
// and the file does not have, patterns that are none, fields that are not
// numbers where they are scaled, and a row that gets one column twice.
absl::StatusOr<MeasuredTable> ReadMeasuredTable(absl::string_view label,
                                                absl::string_view text,
                                                const MeasuredColumns& columns);

// "tp=2,pp=4|8": column = value, or several of one column.
absl::StatusOr<std::vector<MeasuredColumns::Condition>> ParseConditions(
    absl::string_view text);

}  // namespace weir

#endif  // WEIR_RESULTS_MEASURED_TABLE_H_
