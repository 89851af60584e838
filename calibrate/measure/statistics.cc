// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measure/statistics.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/quantiles.h"

namespace weir::calibrate {
namespace {

constexpr double kOutside = 0.025;  // on each side of the interval

}  // namespace

MedianInterval MedianIntervalOf(int num_samples) {
  const int n = num_samples;
  // Chance of at most `low` heads in n throws of a fair coin.
  double below = 0;
  int low = 0;
  for (int heads = 0; heads < n / 2; ++heads) {
    below += std::exp(std::lgamma(n + 1) - std::lgamma(heads + 1) -
                      std::lgamma(n - heads + 1) - n * std::log(2.0));
    if (below > kOutside) break;
    low = heads;
  }
  return {low, std::max(n - 1 - low, low)};
}

Quantiles SummarizeSamples(absl::Span<const double> samples) {
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  const double n = static_cast<double>(sorted.size());
  double sum = 0, squares = 0;
  for (double x : sorted) sum += x;
  const double mean = sum / n;
  for (double x : sorted) squares += (x - mean) * (x - mean);
  const double median = QuantileOfSorted(sorted, 0.5);
  std::vector<double> distances;
  for (double x : sorted) distances.push_back(std::abs(x - median));
  const MedianInterval interval =
      MedianIntervalOf(static_cast<int>(sorted.size()));

  Quantiles result;
  result.set_num_samples(static_cast<uint32_t>(sorted.size()));
  result.set_min(sorted.front());
  result.set_p10(QuantileOfSorted(sorted, 0.1));
  result.set_p50(median);
  result.set_p90(QuantileOfSorted(sorted, 0.9));
  result.set_p99(QuantileOfSorted(sorted, 0.99));
  result.set_mean(mean);
  result.set_deviation(n > 1 ? std::sqrt(squares / (n - 1)) : 0);
  result.set_relative_ci((sorted[interval.high] - sorted[interval.low]) / 2 /
                         median);
  result.set_median_absolute_deviation(weir::Median(distances));
  return result;
}

}  // namespace weir::calibrate
