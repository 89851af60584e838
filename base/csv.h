// SPDX-License-Identifier: Apache-2.0
// Tables in comma-separated values with a header line:
//
//   ASSIGN_OR_RETURN(const CsvTable table, ReadCsv(path, text));
//   ASSIGN_OR_RETURN(const CsvColumn m, table.Column("m"));
//   ASSIGN_OR_RETURN(const std::vector<double> sizes, m.Numbers(1, 1e9));
//
// A field that a spreadsheet would take for a formula is written with a ' in
// front of it, which ReadCsv removes.
//
// Quoted fields may hold commas, doubled quotes and line ends; spaces around
// an unquoted field, a byte order mark, CRLF and empty lines do not count.
// Errors read "<label>:<line>: <column> is <found>, expected <what>", all of a
// table (or column) at once.
#ifndef WEIR_BASE_CSV_H_
#define WEIR_BASE_CSV_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weir {

struct CsvRow {
  int line;                         // in the file, from 1; where the row begins
  std::vector<std::string> fields;  // as many as the header has
};

class CsvTable;

// One column; the table must outlive it.
class CsvColumn {
 public:
  CsvColumn(const CsvTable& table, int index) : table_(&table), index_(index) {}

  const std::string& name() const;
  const std::string& Text(int row) const;

  // The field as a finite number in [low, high]; InvalidArgument names line
  // and column.
  absl::StatusOr<double> Number(int row, double low, double high) const;

  // All rows; the error has a line for each bad field (the first 20).
  absl::StatusOr<std::vector<double>> Numbers(double low, double high) const;

  // InvalidArgument "<label>:<line>: <column> is \"<field>\", <expected>".
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

  // InvalidArgument when there is none: names the columns that are there.
  absl::StatusOr<CsvColumn> Column(absl::string_view name) const;

 private:
  int Find(absl::string_view name) const;  // -1: none

  std::string label_;
  std::vector<std::string> header_;
  std::vector<CsvRow> rows_;
};

// Reads a table; `label` is what errors call it. InvalidArgument without a
// header, when a column's name is empty or there twice, for a row of another
// length than the header, and for bad quotes.
absl::StatusOr<CsvTable> ReadCsv(absl::string_view label,
                                 absl::string_view text);

// Returns the text as a field to write: in quotes where it must be (RFC 4180),
// control characters as '?'. Text that begins with = + - or @ and is not a
// number gets a ' in front, so that no spreadsheet runs it as a formula.
std::string CsvField(absl::string_view text);

}  // namespace weir

#endif  // WEIR_BASE_CSV_H_
