// SPDX-License-Identifier: Apache-2.0
// Medians and other quantiles.
#ifndef WEIR_BASE_QUANTILES_H_
#define WEIR_BASE_QUANTILES_H_

#include <vector>

#include "absl/types/span.h"

namespace weir {

// Returns a quantile, linearly interpolated between order statistics (type 7 of
// Hyndman and Fan, 1996, "Sample Quantiles in Statistical Packages"). Requires:
// sorted values, at least one; part in [0, 1].
double QuantileOfSorted(absl::Span<const double> sorted, double part);

// Returns the median, of an even number of values the mean of the middle two.
// Requires: at least one value.
double Median(std::vector<double> values);

// Returns the lower median: of an even number of values, the smaller one of the
// middle two. Requires: at least one value.
double LowerMedian(std::vector<double> values);

}  // namespace weir

#endif  // WEIR_BASE_QUANTILES_H_
