// SPDX-License-Identifier: Apache-2.0
#include "base/error_statistics.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"

namespace weir {
namespace {

// Returns a percentile, interpolated linearly between the order statistics.
// `part` is in [0, 1]. Requires: `values` is not empty.
double Percentile(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  const double place = part * static_cast<double>(values.size() - 1);
  const size_t below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, values.size() - 1);
  const double rest = place - static_cast<double>(below);
  return values[below] * (1 - rest) + values[above] * rest;
}

}  // namespace

std::vector<double> RelativeErrors(absl::Span<const double> predicted,
                                   absl::Span<const double> measured) {
  std::vector<double> errors(predicted.size());
  for (size_t i = 0; i < predicted.size(); ++i) {
    errors[i] = predicted[i] / measured[i] - 1;
  }
  return errors;
}

ErrorStatistics Summarize(absl::Span<const double> errors) {
  ErrorStatistics statistics;
  if (errors.empty()) return statistics;
  std::vector<double> sizes;
  for (size_t i = 0; i < errors.size(); ++i) {
    sizes.push_back(std::abs(errors[i]));
    statistics.mean_absolute += sizes[i];
    statistics.bias += errors[i];
    if (statistics.worst_row < 0 || sizes[i] > std::abs(statistics.worst)) {
      statistics.worst = errors[i];
      statistics.worst_row = static_cast<int>(i);
    }
  }
  statistics.num_rows = static_cast<int>(errors.size());
  statistics.mean_absolute /= statistics.num_rows;
  statistics.bias /= statistics.num_rows;
  statistics.median_absolute = Percentile(sizes, 0.5);
  statistics.percentile_90 = Percentile(std::move(sizes), 0.9);
  return statistics;
}

ErrorStatistics SummarizeErrors(absl::Span<const double> predicted,
                                absl::Span<const double> measured) {
  return Summarize(RelativeErrors(predicted, measured));
}

std::string Describe(const ErrorStatistics& statistics) {
  return absl::StrFormat(
      "mean |error| %.1f %%, bias %+.1f %%, 90th percentile %.1f %%, worst "
      "%+.1f %%, %d rows",
      100 * statistics.mean_absolute, 100 * statistics.bias,
      100 * statistics.percentile_90, 100 * statistics.worst,
      statistics.num_rows);
}

}  // namespace weir
