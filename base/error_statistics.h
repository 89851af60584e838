// SPDX-License-Identifier: Apache-2.0
// Statistics of prediction errors.
#ifndef WEIR_BASE_ERROR_STATISTICS_H_
#define WEIR_BASE_ERROR_STATISTICS_H_

#include <string>
#include <vector>

#include "absl/types/span.h"

namespace weir {

// Statistics of errors, usually relative ones: predicted / measured - 1: 0.05
// is a prediction 5 % too slow.
struct ErrorStatistics {
  int num_rows = 0;
  double mean_absolute = 0;
  double bias = 0;  // signed mean
  double median_absolute = 0;
  double percentile_90 = 0;  // of the absolute errors, interpolated
  double worst = 0;          // signed error of largest magnitude
  int worst_row = -1;        // index of the worst error; -1: no rows
};

// Returns predicted / measured - 1. Requires: equal sizes, every measured value
// > 0.
std::vector<double> RelativeErrors(absl::Span<const double> predicted,
                                   absl::Span<const double> measured);

ErrorStatistics Summarize(absl::Span<const double> errors);

// Summarizes RelativeErrors(predicted, measured), with the same requirements.
ErrorStatistics SummarizeErrors(absl::Span<const double> predicted,
                                absl::Span<const double> measured);

// Returns "mean |error| 3.1 %, bias -0.2 %, 90th percentile 6.4 %, worst +21.0
// %, 3381 rows".
std::string Describe(const ErrorStatistics& statistics);

}  // namespace weir

#endif  // WEIR_BASE_ERROR_STATISTICS_H_
