// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/cross_validation.h"

#include <set>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace weir::calibrate {

absl::StatusOr<std::vector<double>> CrossValidate(
    absl::Span<const int> groups, const FitAndPredict& fit_and_predict) {
  const int num_rows = static_cast<int>(groups.size());
  std::vector<double> predicted(groups.size());
  for (int group : std::set<int>(groups.begin(), groups.end())) {
    std::vector<int> fitted, left_out;
    for (int row = 0; row < num_rows; ++row) {
      (groups[row] == group ? left_out : fitted).push_back(row);
    }
    ASSIGN_OR_RETURN(const std::vector<double> values,
                     fit_and_predict(fitted, left_out));
    if (values.size() != left_out.size()) {
      return absl::InternalError(absl::StrCat("predicted ", values.size(),
                                              " rows of ", left_out.size()));
    }
    for (size_t i = 0; i < values.size(); ++i) {
      predicted[left_out[i]] = values[i];
    }
  }
  return predicted;
}

std::vector<int> RowFolds(int num_rows, int num_folds) {
  std::vector<int> groups(num_rows);
  for (int row = 0; row < num_rows; ++row) groups[row] = row % num_folds;
  return groups;
}

}  // namespace weir::calibrate
