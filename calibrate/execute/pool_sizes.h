// SPDX-License-Identifier: Apache-2.0
// Sizes of the memory pools of the ranks that share a GPU.
#ifndef WEIR_CALIBRATE_EXECUTE_POOL_SIZES_H_
#define WEIR_CALIBRATE_EXECUTE_POOL_SIZES_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace weir::calibrate {

// Fraction by which a rank's pool must exceed its predicted peak. A replay
// allocates message buffers before their first byte and frees them when their
// arrival is certain, which takes up to 3.4 % more than the predicted peak over
// time (docs/replay.md); pools round sizes up.
inline constexpr double kPoolMargin = 0.05;

// Returns the bytes that ranks with these predicted peaks need together.
double NeededPoolBytes(absl::Span<const double> predicted_peak_bytes);

// Divides `available_bytes` among the ranks in proportion to their predicted
// peaks, or equally if there are not `num_ranks` predictions or none is
// positive.
std::vector<int64_t> DividePoolBytes(
    absl::Span<const double> predicted_peak_bytes, int num_ranks,
    double available_bytes);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_POOL_SIZES_H_
