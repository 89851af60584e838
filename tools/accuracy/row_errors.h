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

// Two rows of a group, which is a name up to its first ": ".
struct Order {
  int num_pairs = 0;               // measured differently
  std::vector<std::string> wrong;  // "A before B"
};

// Of all pairs of a group.
Order CompareOrder(const RowErrors& rows);

}  // namespace weir

#endif  // WEIR_TOOLS_ACCURACY_ROW_ERRORS_H_
