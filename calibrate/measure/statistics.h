// SPDX-License-Identifier: Apache-2.0
// What repeated runs of the same thing say.
#ifndef WEIR_CALIBRATE_MEASURE_STATISTICS_H_
#define WEIR_CALIBRATE_MEASURE_STATISTICS_H_

#include "absl/types/span.h"
#include "calibrate/measured_costs.pb.h"

namespace weir {

// Linear between order statistics (type 7 of Hyndman and Fan). REQUIRES: sorted
// samples, at least one; part in [0, 1].
double QuantileOf(absl::Span<const double> sorted, double part);

// Order statistics, from 0, between which the median lies with 95 % confidence
// whatever the distribution: the narrowest symmetric pair whose binomial
// coverage is at least that. Below 6 samples no pair has it: the extremes.
struct MedianInterval {
  int low = 0, high = 0;
};
MedianInterval MedianIntervalOf(int num_samples);

// All of Quantiles. REQUIRES: at least one sample, all finite and above 0.
Quantiles SummarizeSamples(absl::Span<const double> samples);

}  // namespace weir

#endif  // WEIR_CALIBRATE_MEASURE_STATISTICS_H_
