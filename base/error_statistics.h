// SPDX-License-Identifier: Apache-2.0
// How far predictions are from measurements.
#ifndef WEIR_BASE_ERROR_STATISTICS_H_
#define WEIR_BASE_ERROR_STATISTICS_H_

#include <string>
#include <vector>

#include "absl/types/span.h"

namespace weir {

// Of errors, mostly relative ones: predicted / measured - 1; 0.05 is 5 % too
// slow.
struct ErrorStatistics {
  int num_rows = 0;
  double mean_absolute = 0;
  double bias = 0;  // mean, with its sign
  double median_absolute = 0;
  double percentile_90 = 0;  // of the absolute errors, interpolated
  double worst = 0;          // the largest by absolute value, with its sign
  int worst_row = -1;        // index into what was given; -1: no rows
};

// REQUIRES: as many of both, every measured value > 0.
std::vector<double> RelativeErrors(absl::Span<const double> predicted,
                                   absl::Span<const double> measured);

ErrorStatistics Summarize(absl::Span<const double> errors);

// The same of RelativeErrors. REQUIRES: as many of both, every measured value >
// 0.
ErrorStatistics SummarizeErrors(absl::Span<const double> predicted,
                                absl::Span<const double> measured);

// "mean |error| 3.1 %, bias -0.2 %, 90th percentile 6.4 %, worst +21.0 %,
// 3381 rows"
std::string Describe(const ErrorStatistics& statistics);

}  // namespace weir

#endif  // WEIR_BASE_ERROR_STATISTICS_H_
