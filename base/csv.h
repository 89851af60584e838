// SPDX-License-Identifier: Apache-2.0
// Reads tables of comma-separated values with a header line:
//
//   ASSIGN_OR_RETURN(const CsvTable table, ReadCsv(path, text));
//   ASSIGN_OR_RETURN(const CsvColumn m, table.Column("m"));
//   ASSIGN_OR_RETURN(const std::vector<double> sizes, m.Numbers(1, 1e9));
//
// A field that a spreadsheet would treat as a formula is written with a leading
// apostrophe, which ReadCsv removes.
//
// Quoted fields may contain commas, doubled quotes and line breaks. Spaces
// around unquoted fields, a byte order mark, CRLF and empty lines are ignored.
// Errors read "<label>:<line>: <column> is <found>, expected <what>"; all
// errors of a table or column are reported at once.
#ifndef WEIR_BASE_CSV_H_
#define WEIR_BASE_CSV_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weir {

struct CsvRow {
  // Number of the row's first line in the file, from 1.
  int line;
  // One field per column of the header.
  std::vector<std::string> fields;
};

class CsvTable;

// A column of a table. The table must outlive it.
class CsvColumn {
 public:
  CsvColumn(const CsvTable& table, int index) : table_(&table), index_(index) {}

  const std::string& name() const;
  const std::string& Text(int row) const;

  // Returns the field as a finite number in [low, high], or InvalidArgument
  // with line and column.
  absl::StatusOr<double> Number(int row, double low, double high) const;

  // Returns the numbers of all rows, or InvalidArgument with a line for each of
  // the first 20 bad fields.
  absl::StatusOr<std::vector<double>> Numbers(double low, double high) const;

  // Returns InvalidArgument "<label>:<line>: <column> is \"<field>\",
  // <expected>".
  absl::Status Error(int row, absl::string_view expected) const;

 private:
  const CsvTable* table_;
  int index_;
};

class CsvTable {
 public:
  CsvTable(std::string label, std::vector<std::string> header,
           std::vector<CsvRow> rows)
      : label_(std::move(label)),
        header_(std::move(header)),
        rows_(std::move(rows)) {}

  const std::string& label() const { return label_; }
  const std::vector<std::string>& header() const { return header_; }
  const std::vector<CsvRow>& rows() const { return rows_; }
  int num_rows() const { return static_cast<int>(rows_.size()); }

  bool HasColumn(absl::string_view name) const { return Find(name) >= 0; }

  // Returns InvalidArgument with the existing columns if there is no such
  // column.
  absl::StatusOr<CsvColumn> Column(absl::string_view name) const;

 private:
  int Find(absl::string_view name) const;  // -1 if none

  std::string label_;
  std::vector<std::string> header_;
  std::vector<CsvRow> rows_;
};

// Reads a table. Error messages begin with `label`. Returns InvalidArgument if
// there is no header, a column name is empty or repeated, the lengths of a row
// and the header differ, or quotes are malformed.
absl::StatusOr<CsvTable> ReadCsv(absl::string_view label,
                                 absl::string_view text);

// Returns the text as a CSV field, quoted if necessary (RFC 4180), with control
// characters replaced by '?'. A leading apostrophe is added to text that begins
// with =, +, - or @ and is not a number, so that no spreadsheet runs it as a
// formula.
std::string CsvField(absl::string_view text);

}  // namespace weir

#endif  // WEIR_BASE_CSV_H_
