// SPDX-License-Identifier: Apache-2.0
// Acceptance in local searches: the cost may rise by at most a threshold, which
// falls with the square of the remaining moves.
#ifndef WEIR_PLAN_SYNTHESIS_SEARCH_THRESHOLD_H_
#define WEIR_PLAN_SYNTHESIS_SEARCH_THRESHOLD_H_

#include <cstdint>

namespace weir::plan {

// Weight of the ranks' mean end time relative to the objective. Most moves do
// not change the slowest rank; finishing another rank earlier can help a later
// move.
inline constexpr double kWeightOfMeans = 0.05;
// The initial threshold, in passes of mean length.
inline constexpr double kFirstThreshold = 0.6;

// Returns the threshold in seconds. `mean_seconds`: of a pass.
inline double ThresholdAt(double mean_seconds, int64_t move,
                          int64_t num_moves) {
  const double left =
      1 - static_cast<double>(move) / static_cast<double>(num_moves);
  return kFirstThreshold * mean_seconds * left * left;
}

}  // namespace weir::plan

#endif  // WEIR_PLAN_SYNTHESIS_SEARCH_THRESHOLD_H_
