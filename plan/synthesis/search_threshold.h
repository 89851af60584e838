// SPDX-License-Identifier: Apache-2.0
// What local searches accept: a cost that is no worse by more than a threshold,
// which falls with the square of the moves that are left.
#ifndef WEIR_PLAN_SYNTHESIS_SEARCH_THRESHOLD_H_
#define WEIR_PLAN_SYNTHESIS_SEARCH_THRESHOLD_H_

#include <cstdint>

namespace weir {

// Beside the objective what all ranks take counts a little: most moves leave
// the slowest rank as it is, and one that frees another helps later.
inline constexpr double kWeightOfMeans = 0.05;
// The first threshold, in passes of mean length.
inline constexpr double kFirstThreshold = 0.6;

inline double ThresholdAt(double mean_seconds, int64_t move,
                          int64_t num_moves) {
  const double left =
      1 - static_cast<double>(move) / static_cast<double>(num_moves);
  return kFirstThreshold * mean_seconds * left * left;
}

}  // namespace weir

#endif  // WEIR_PLAN_SYNTHESIS_SEARCH_THRESHOLD_H_
