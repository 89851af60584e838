// SPDX-License-Identifier: Apache-2.0
// The rows of a set, read from the output of "weir validate --format csv".
#ifndef WEIR_TOOLS_ACCURACY_ROW_ERRORS_H_
#define WEIR_TOOLS_ACCURACY_ROW_ERRORS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/error_statistics.h"

namespace weir {

// A normal variable lies within this many standard deviations of its mean in
// nine cases of ten.
inline constexpr double kNineOfTen = 1.6448536269514722;

// Whether a run was predicted to fit.
struct FitRow {
  int line = 0;
  bool ran = false;  // false: it ran out of memory
  bool predicted_to_fit = false;
  double memory_use = 0;  // predicted peak / memory of the GPU
};

struct RowErrors {
  std::vector<int> lines;
  std::vector<std::string> names;
  std::vector<double> measured;
  std::vector<double> predicted;
  // Intervals that hold in nine of ten cases; 0 if a row has none, empty if the
  // file has none.
  std::vector<double> low, high;
  int num_predicted_misfits = 0;  // but the run succeeded
  // Reasons, such as "line 12: run: reason".
  std::vector<std::string> skipped;
  std::vector<std::string> wrong_misfits;  // did not fit, but predicted to fit
  int num_misfits = 0;
  // One for each number, and for each run that ran out of memory; empty if the
  // file does not have the use of memory.
  std::vector<FitRow> verdicts;

  ErrorStatistics Statistics() const {
    return SummarizeErrors(predicted, measured);
  }
};

// Loads the rows of one quantity; empty: of all. Returns NotFound if the file
// does not exist, InvalidArgument if it is malformed.
absl::StatusOr<RowErrors> LoadRowErrors(const std::string& path,
                                        const std::string& quantity);

// Returns the fraction of measured values inside their intervals. The interval
// of a line in `of` is shifted to the new prediction of the line in `rows`.
// Negative: no row has an interval.
double PartInside(const RowErrors& rows, const RowErrors& of);

// Returns the step_residual of a runtime with which nine of ten rows are inside
// their intervals, if the present intervals were computed with `residual`; see
// docs/uncertainty.md. Negative: no row has an interval.
double StepResidual(const RowErrors& rows, const RowErrors& of,
                    double residual);

// The order of pairs of rows in a group, which is a name up to its first ": ".
// Rows whose name contains none are in no group.
struct Order {
  int num_pairs = 0;               // pairs with different measurements
  std::vector<std::string> wrong;  // "A before B"
};

// Compares the predicted with the measured order of all pairs in a group.
Order CompareOrder(const RowErrors& rows);

}  // namespace weir

#endif  // WEIR_TOOLS_ACCURACY_ROW_ERRORS_H_
