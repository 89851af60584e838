// SPDX-License-Identifier: Apache-2.0
#include "base/quantiles.h"

#include <algorithm>
#include <cstddef>

namespace weir {

double QuantileOfSorted(absl::Span<const double> sorted, double part) {
  const double place = part * static_cast<double>(sorted.size() - 1);
  const size_t below = static_cast<size_t>(place);
  if (below + 1 >= sorted.size()) return sorted.back();
  const double weight = place - static_cast<double>(below);
  return sorted[below] + weight * (sorted[below + 1] - sorted[below]);
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return QuantileOfSorted(values, 0.5);
}

double LowerMedian(std::vector<double> values) {
  const auto middle =
      values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace weir
