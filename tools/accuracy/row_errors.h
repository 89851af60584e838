// SPDX-License-Identifier: Apache-2.0
// The rows of a set as "weir validate --format csv" writes them.
#ifndef WEIR_TOOLS_ACCURACY_ROW_ERRORS_H_
#define WEIR_TOOLS_ACCURACY_ROW_ERRORS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/error_statistics.h"

namespace weir {

struct RowErrors {
  std::vector<int> lines;
  std::vector<std::string> names;
  std::vector<double> measured;
  std::vector<double> predicted;
  // Nine cases of ten; 0 where nothing is said, empty where the file has none.
  std::vector<double> low, high;
  int num_predicted_misfits = 0;  // they ran
  // "line 12: run: reason"
  std::vector<std::string> skipped;
  std::vector<std::string> wrong_misfits;  // did not fit, predicted to
  int num_misfits = 0;

  ErrorStatistics Statistics() const {
    return SummarizeErrors(predicted, measured);
  }
};

// Rows of one quantity; empty: of all.
absl::StatusOr<RowErrors> LoadRowErrors(const std::string& path,
                                        const std::string& quantity);

// The part of measured values inside their intervals, each interval moved with
// its prediction: `rows` are predicted anew, the intervals are `of` the same
// lines. Negative: no row has an interval.
double PartInside(const RowErrors& rows, const RowErrors& of);

// The step_residual of a runtime with which nine of ten rows are inside, when
// the intervals were made with `residual`: see docs/uncertainty.md. Negative:
// no row has an interval.
double StepResidual(const RowErrors& rows, const RowErrors& of,
                    double residual);

// Two rows of a group, which is a name up to its first ": ".
struct Order {
  int num_pairs = 0;               // measured differently
  std::vector<std::string> wrong;  // "A before B"
};

// Of all pairs of a group.
Order CompareOrder(const RowErrors& rows);

}  // namespace weir

#endif  // WEIR_TOOLS_ACCURACY_ROW_ERRORS_H_
