// SPDX-License-Identifier: Apache-2.0
// Statistics of repeated measurements.
#ifndef WEIR_CALIBRATE_MEASURE_STATISTICS_H_
#define WEIR_CALIBRATE_MEASURE_STATISTICS_H_

#include "absl/types/span.h"
#include "calibrate/profile/measured_costs.pb.h"

namespace weir::calibrate {

// Indices, from 0, of the order statistics that contain the median with 95 %
// confidence for any distribution: the narrowest symmetric pair whose binomial
// coverage is at least 95 %. Below 6 samples no pair suffices, and the extremes
// are used.
struct MedianInterval {
  int low = 0, high = 0;
};
MedianInterval MedianIntervalOf(int num_samples);

// Computes all fields of Quantiles. Requires: at least one sample; all are
// finite and positive.
Quantiles SummarizeSamples(absl::Span<const double> samples);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_MEASURE_STATISTICS_H_
