// SPDX-License-Identifier: Apache-2.0
// Predictions for measured rows by fits that exclude them.
//
//   // 10 folds over rows, or one fold per shape:
//   const std::vector<int> groups = RowFolds(num_rows, 10);
//   const std::vector<int> groups = GroupsOf(shapes);
//   ASSIGN_OR_RETURN(const std::vector<double> predicted,
//                    CrossValidate(groups, fit_and_predict));
#ifndef WEIR_CALIBRATE_FIT_CROSS_VALIDATION_H_
#define WEIR_CALIBRATE_FIT_CROSS_VALIDATION_H_

#include <functional>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace weir::calibrate {

// Fits to the rows `fitted` and returns the predictions for the rows
// `left_out`, in that order. Rows are indices.
using FitAndPredict = std::function<absl::StatusOr<std::vector<double>>(
    absl::Span<const int> fitted, absl::Span<const int> left_out)>;

// Returns for every row the prediction of a fit to all rows outside its group.
// groups[row] is an arbitrary number; groups are processed in ascending order.
// Returns the error of a failed call, or Internal if a call returns the wrong
// number of predictions.
absl::StatusOr<std::vector<double>> CrossValidate(
    absl::Span<const int> groups, const FitAndPredict& fit_and_predict);

// Assigns rows to `num_folds` groups in turn. With as many folds as rows, each
// row is left out alone. Requires: num_folds >= 1.
std::vector<int> RowFolds(int num_rows, int num_folds);

// Returns a group per distinct key, numbered by first appearance.
template <typename Key>
std::vector<int> GroupsOf(const std::vector<Key>& keys) {
  std::map<Key, int> numbers;
  std::vector<int> groups;
  groups.reserve(keys.size());
  for (const Key& key : keys) {
    groups.push_back(
        numbers.emplace(key, static_cast<int>(numbers.size())).first->second);
  }
  return groups;
}

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_FIT_CROSS_VALIDATION_H_
