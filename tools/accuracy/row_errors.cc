// SPDX-License-Identifier: Apache-2.0
#include "tools/accuracy/row_errors.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/csv.h"
#include "base/files.h"
#include "base/status_macros.h"

namespace weir {
namespace {

// Returns the group of a row, or "" if it is in none.
std::string GroupOf(const std::string& name) {
  const size_t colon = name.find(": ");
  return colon == std::string::npos ? "" : name.substr(0, colon);
}

struct Scored {
  double log_error = 0;  // log(measured / predicted)
  double deviation = 0;  // by the interval
};

// Returns the errors of those rows whose line has a prediction interval in
// `of`.
std::vector<Scored> Score(const RowErrors& rows, const RowErrors& of) {
  std::map<int, double> deviation;
  for (size_t i = 0; i < of.high.size() && i < of.low.size(); ++i) {
    if (!(of.high[i] > of.low[i]) || !(of.low[i] > 0)) continue;
    deviation[of.lines[i]] =
        std::log(of.high[i] / of.low[i]) / (2 * kNineOfTen);
  }
  std::vector<Scored> scored;
  for (size_t i = 0; i < rows.lines.size(); ++i) {
    const auto at = deviation.find(rows.lines[i]);
    if (at == deviation.end() || !(rows.predicted[i] > 0)) continue;
    scored.push_back(
        {std::log(rows.measured[i] / rows.predicted[i]), at->second});
  }
  return scored;
}

// Adds the verdict on row `i` if the table has its use of memory.
absl::Status AddVerdict(const CsvTable& table, const CsvColumn& line,
                        const CsvColumn& fits, bool ran_out, int i,
                        std::vector<FitRow>* verdicts) {
  if (!table.HasColumn("memory_use")) return absl::OkStatus();
  ASSIGN_OR_RETURN(const CsvColumn use, table.Column("memory_use"));
  if (use.Text(i).empty()) return absl::OkStatus();
  FitRow row;
  ASSIGN_OR_RETURN(const double number, line.Number(i, 0, 1e9));
  row.line = static_cast<int>(number);
  ASSIGN_OR_RETURN(row.memory_use, use.Number(i, 0, 1e9));
  row.ran = !ran_out;
  row.predicted_to_fit = fits.Text(i) == "true";
  verdicts->push_back(row);
  return absl::OkStatus();
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
    if (fits.Text(i) == "true" || fits.Text(i) == "false") {
      RETURN_IF_ERROR(AddVerdict(table, line, fits, what.Text(i).empty(), i,
                                 &rows.verdicts));
    }
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
    for (const auto& [name, values] :
         {std::pair{"low", &rows.low}, {"high", &rows.high}}) {
      if (!table.HasColumn(name)) continue;
      ASSIGN_OR_RETURN(const CsvColumn column, table.Column(name));
      double value = 0;
      if (!column.Text(i).empty()) {
        ASSIGN_OR_RETURN(value, column.Number(i, 0, kMost));
      }
      values->push_back(value);
    }
    if (fits.Text(i) == "false") ++rows.num_predicted_misfits;
  }
  return rows;
}

double PartInside(const RowErrors& rows, const RowErrors& of) {
  const std::vector<Scored> scored = Score(rows, of);
  if (scored.empty()) return -1;
  const auto inside =
      std::count_if(scored.begin(), scored.end(), [](const Scored& row) {
        return std::abs(row.log_error) <= kNineOfTen * row.deviation;
      });
  return 1.0 * inside / scored.size();
}

double StepResidual(const RowErrors& rows, const RowErrors& of,
                    double residual) {
  const std::vector<Scored> scored = Score(rows, of);
  if (scored.empty()) return -1;
  // The residual that each row needs, given the variance of its costs.
  std::vector<double> needed;
  for (const Scored& row : scored) {
    const double costs = row.deviation * row.deviation - residual * residual;
    const double all = row.log_error / kNineOfTen;
    needed.push_back(std::sqrt(std::max(all * all - costs, 0.0)));
  }
  std::sort(needed.begin(), needed.end());
  const auto ninth = static_cast<size_t>(std::ceil(0.9 * needed.size())) - 1;
  return needed[ninth];
}

Order CompareOrder(const RowErrors& rows) {
  Order order;
  for (size_t a = 0; a < rows.names.size(); ++a) {
    for (size_t b = a + 1; b < rows.names.size(); ++b) {
      const std::string group = GroupOf(rows.names[a]);
      if (group.empty() || group != GroupOf(rows.names[b]) ||
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
