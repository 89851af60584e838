// SPDX-License-Identifier: Apache-2.0
#include "base/csv.h"

#include <csv.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/spelling.h"
#include "base/status_macros.h"
#include "base/text.h"

namespace weir {
namespace {

// A damaged header may repeat a name a million times.
constexpr size_t kMaxHeaderErrors = 5;

// Enough to recognize the actual format of the file.
constexpr size_t kMaxErrors = 20;
constexpr size_t kMaxColumnsText = 300;  // characters

// Filled by the callbacks of libcsv.
struct Rows {
  std::vector<CsvRow> rows;
  CsvRow row;  // the row being read
  bool ended = false;
};

// Returns true if a spreadsheet may treat the text as a formula. Leading
// apostrophes are ignored, because writing adds one and reading removes one.
bool IsFormula(absl::string_view text) {
  const size_t begin = text.find_first_not_of("' ");
  return begin != absl::string_view::npos &&
         absl::StrContains("=+-@", text[begin]);
}

bool IsNumber(absl::string_view text) {
  double value = 0;
  return absl::SimpleAtod(text, &value) && std::isfinite(value);
}

void TakeField(void* field, size_t size, void* rows) {
  absl::string_view text(static_cast<char*>(field), size);
  if (IsFormula(text)) absl::ConsumePrefix(&text, "'");
  static_cast<Rows*>(rows)->row.fields.emplace_back(text);
}

void TakeRow(int /*terminator*/, void* data) {
  Rows* rows = static_cast<Rows*>(data);
  rows->rows.push_back(std::move(rows->row));
  rows->row.fields.clear();
  rows->ended = true;
}

class Parser {
 public:
  Parser() { csv_init(&parser_, CSV_STRICT | CSV_STRICT_FINI); }
  ~Parser() { csv_free(&parser_); }
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;

  // Parses line by line, so that every row has its line number.
  absl::StatusOr<std::vector<CsvRow>> Parse(absl::string_view label,
                                            absl::string_view text) {
    bool open = false;  // true inside a quoted field that spans lines
    int line = 0;
    while (!text.empty()) {
      ++line;
      const size_t end = text.find('\n');
      const absl::string_view part = text.substr(
          0, end == absl::string_view::npos ? text.size() : end + 1);
      text.remove_prefix(part.size());
      if (!open) rows_.row.line = line;
      rows_.ended = false;
      const size_t read = csv_parse(&parser_, part.data(), part.size(),
                                    TakeField, TakeRow, &rows_);
      if (read != part.size()) {
        return absl::InvalidArgumentError(absl::StrCat(
            label, ":", line, ":", read,
            ": a quote inside a field, expected \"...\" around the field and "
            "\"\" for a quote in it"));
      }
      open = !rows_.ended && !absl::StripAsciiWhitespace(part).empty();
    }
    if (csv_fini(&parser_, TakeField, TakeRow, &rows_) != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(label, ":", rows_.row.line,
                       ": a quoted field is not closed, expected \""));
    }
    return std::move(rows_.rows);
  }

 private:
  csv_parser parser_;
  Rows rows_;
};

absl::Status AllErrors(const std::vector<std::string>& errors) {
  if (errors.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(errors, "\n"));
}

absl::Status CheckHeader(absl::string_view where, const CsvRow& header) {
  std::vector<std::string> errors;
  std::set<std::string> seen;
  for (size_t i = 0; i < header.fields.size(); ++i) {
    if (errors.size() == kMaxHeaderErrors) break;
    const std::string& name = header.fields[i];
    if (name.empty()) {
      errors.push_back(absl::StrCat(where, ":", header.line, ": column ", i + 1,
                                    " has no name, expected one"));
    } else if (!seen.insert(name).second) {
      errors.push_back(absl::StrCat(where, ":", header.line, ": column \"",
                                    name, "\" appears twice"));
    }
  }
  return AllErrors(errors);
}

}  // namespace

const std::string& CsvColumn::name() const { return table_->header()[index_]; }

const std::string& CsvColumn::Text(int row) const {
  return table_->rows()[row].fields[index_];
}

absl::Status CsvColumn::Error(int row, absl::string_view expected) const {
  return absl::InvalidArgumentError(
      absl::StrCat(table_->label(), ":", table_->rows()[row].line, ": ", name(),
                   " is \"", Text(row), "\", ", expected));
}

absl::StatusOr<double> CsvColumn::Number(int row, double low,
                                         double high) const {
  double value = 0;
  if (!absl::SimpleAtod(Text(row), &value) || !std::isfinite(value)) {
    return Error(row, "expected a number");
  }
  if (!(value >= low && value <= high)) {
    return Error(row, absl::StrCat("expected ", low, " to ", high));
  }
  return value;
}

absl::StatusOr<std::vector<double>> CsvColumn::Numbers(double low,
                                                       double high) const {
  std::vector<double> values;
  std::vector<std::string> errors;
  for (int row = 0; row < table_->num_rows(); ++row) {
    const absl::StatusOr<double> value = Number(row, low, high);
    if (value.ok()) {
      values.push_back(*value);
    } else if (errors.size() < kMaxErrors) {
      errors.emplace_back(value.status().message());
    }
  }
  RETURN_IF_ERROR(AllErrors(errors));
  return values;
}

int CsvTable::Find(absl::string_view name) const {
  const auto found = std::find(header_.begin(), header_.end(), name);
  return found == header_.end() ? -1
                                : static_cast<int>(found - header_.begin());
}

absl::StatusOr<CsvColumn> CsvTable::Column(absl::string_view name) const {
  const int index = Find(name);
  if (index >= 0) return CsvColumn(*this, index);
  return absl::InvalidArgumentError(absl::StrCat(
      label_, ": has no column ", name, DidYouMean(name, header_), " (",
      Shortened(absl::StrJoin(header_, ", "), kMaxColumnsText), ")"));
}

absl::StatusOr<CsvTable> ReadCsv(absl::string_view label,
                                 absl::string_view text) {
  // Byte order mark, written by spreadsheets.
  absl::ConsumePrefix(&text, "\xEF\xBB\xBF");
  ASSIGN_OR_RETURN(std::vector<CsvRow> rows, Parser().Parse(label, text));
  if (rows.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(label, ":1: is empty, expected a line with column names"));
  }
  const CsvRow header = std::move(rows.front());
  rows.erase(rows.begin());
  RETURN_IF_ERROR(CheckHeader(label, header));
  std::vector<std::string> errors;
  for (const CsvRow& row : rows) {
    if (row.fields.size() != header.fields.size() &&
        errors.size() < kMaxErrors) {
      errors.push_back(absl::StrCat(label, ":", row.line, ": has ",
                                    row.fields.size(), " fields, expected ",
                                    header.fields.size(), " (",
                                    absl::StrJoin(header.fields, ", "), ")"));
    }
  }
  RETURN_IF_ERROR(AllErrors(errors));
  return CsvTable(std::string(label), header.fields, std::move(rows));
}

std::string CsvField(absl::string_view text) {
  std::string safe = WithoutControls(text);
  if (IsFormula(safe) && !IsNumber(safe)) safe = absl::StrCat("'", safe);
  // Spaces around a field are kept only inside quotes.
  const bool quote = safe.find_first_of(",\"") != std::string::npos ||
                     absl::StripAsciiWhitespace(safe) != safe;
  if (!quote) return safe;
  std::string field(csv_write(nullptr, 0, safe.data(), safe.size()), '\0');
  csv_write(field.data(), field.size(), safe.data(), safe.size());
  return field;
}

}  // namespace weir
