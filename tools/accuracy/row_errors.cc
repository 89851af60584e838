// SPDX-License-Identifier: Apache-2.0
#include "tools/accuracy/row_errors.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "base/csv.h"
#include "base/files.h"
#include "base/status_macros.h"

namespace weir {
namespace {

std::string GroupOf(const std::string& name) {
  const size_t colon = name.find(": ");
  return colon == std::string::npos ? "" : name.substr(0, colon);
}

}  // namespace

absl::StatusOr<RowErrors> LoadRowErrors(const std::string& path,
                                        const std::string& quantity) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  ASSIGN_OR_RETURN(const CsvTable table, ReadCsv(path, text));
  ASSIGN_OR_RETURN(const CsvColumn line, table.Column("line"));
  ASSIGN_OR_RETURN(const CsvColumn name, table.Column("row"));
  ASSIGN_OR_RETURN(const CsvColumn what, table.Column("quantity"));
  ASSIGN_OR_RETURN(const CsvColumn measured, table.Column("measured"));
  ASSIGN_OR_RETURN(const CsvColumn predicted, table.Column("predicted"));
  ASSIGN_OR_RETURN(const CsvColumn fits, table.Column("fits_memory"));
  ASSIGN_OR_RETURN(const CsvColumn reason, table.Column("reason"));
  constexpr double kMost = std::numeric_limits<double>::max();
  RowErrors rows;
  for (int i = 0; i < table.num_rows(); ++i) {
    const std::string label =
        absl::StrCat("line ", line.Text(i), ": ", name.Text(i));
    if (what.Text(i).empty()) {
      if (reason.Text(i) != "measured not to fit") {
        rows.skipped.push_back(absl::StrCat(label, ": ", reason.Text(i)));
        continue;
      }
      ++rows.num_misfits;
      if (fits.Text(i) == "true") rows.wrong_misfits.push_back(label);
      continue;
    }
    if (!quantity.empty() && what.Text(i) != quantity) continue;
    ASSIGN_OR_RETURN(const double number, line.Number(i, 0, 1e9));
    ASSIGN_OR_RETURN(const double was, measured.Number(i, 1e-300, kMost));
    ASSIGN_OR_RETURN(const double is, predicted.Number(i, 0, kMost));
    rows.lines.push_back(static_cast<int>(number));
    rows.names.push_back(name.Text(i));
    rows.measured.push_back(was);
    rows.predicted.push_back(is);
    if (fits.Text(i) == "false") ++rows.num_predicted_misfits;
  }
  return rows;
}

Order CompareOrder(const RowErrors& rows) {
  Order order;
  for (size_t a = 0; a < rows.names.size(); ++a) {
    for (size_t b = a + 1; b < rows.names.size(); ++b) {
      if (GroupOf(rows.names[a]) != GroupOf(rows.names[b]) ||
          rows.measured[a] == rows.measured[b]) {
        continue;
      }
      ++order.num_pairs;
      const bool was = rows.measured[a] < rows.measured[b];
      const bool is = rows.predicted[a] < rows.predicted[b];
      if (was == is) continue;
      order.wrong.push_back(absl::StrCat(
          rows.names[was ? a : b], " is not below ", rows.names[was ? b : a]));
    }
  }
  return order;
}

}  // namespace weir
