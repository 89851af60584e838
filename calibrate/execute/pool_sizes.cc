// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/pool_sizes.h"

#include <numeric>

namespace weir::calibrate {

double NeededPoolBytes(absl::Span<const double> predicted_peak_bytes) {
  return (1 + kPoolMargin) * std::accumulate(predicted_peak_bytes.begin(),
                                             predicted_peak_bytes.end(), 0.0);
}

std::vector<int64_t> DividePoolBytes(
    absl::Span<const double> predicted_peak_bytes, int num_ranks,
    double available_bytes) {
  const double sum = std::accumulate(predicted_peak_bytes.begin(),
                                     predicted_peak_bytes.end(), 0.0);
  const bool known = sum > 0 && std::ssize(predicted_peak_bytes) == num_ranks;
  std::vector<int64_t> shares;
  for (int rank = 0; rank < num_ranks; ++rank) {
    const double part =
        known ? predicted_peak_bytes[rank] / sum : 1.0 / num_ranks;
    shares.push_back(static_cast<int64_t>(part * available_bytes));
  }
  return shares;
}

}  // namespace weir::calibrate
