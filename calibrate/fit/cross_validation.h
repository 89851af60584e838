// SPDX-License-Identifier: Apache-2.0
// Predictions for measured rows by fits that have not seen them.
//
//   // 10 folds over rows, or every shape left out by turns:
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

namespace weir {

// Fits to the rows of `fitted` alone and predicts those of `left_out`, in that
// order. Rows are indices.
using FitAndPredict = std::function<absl::StatusOr<std::vector<double>>(
    absl::Span<const int> fitted, absl::Span<const int> left_out)>;

// For every row the prediction of a fit to all rows outside of the row's
// group; groups[row] is any number. Calls in order of the groups' numbers. An
// error of a call is returned; Internal when one predicts another count than it
// was asked for.
absl::StatusOr<std::vector<double>> CrossValidate(
    absl::Span<const int> groups, const FitAndPredict& fit_and_predict);

// Row by row into `num_folds` groups; as many folds as rows leave one out.
// REQUIRES: num_folds >= 1.
std::vector<int> RowFolds(int num_rows, int num_folds);

// A group of its own for each distinct key, numbered by first appearance.
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

}  // namespace weir

#endif  // WEIR_CALIBRATE_FIT_CROSS_VALIDATION_H_
