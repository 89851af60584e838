// SPDX-License-Identifier: Apache-2.0
// What local searches accept: a cost that is no worse by more than a threshold,
// which falls with the square of the moves that are left.
#ifndef WEIR_PLAN_SYNTHESIS_SEARCH_THRESHOLD_H_
#define WEIR_PLAN_SYNTHESIS_SEARCH_THRESHOLD_H_

namespace weir {

// Beside the objective what all ranks take counts a little: most moves leave
// the slowest rank as it is, and one that frees another helps later.
inline constexpr double kWeightOfMeans = 0.05;
// The first threshold, in passes of mean length.
inline constexpr double kFirstThreshold = 0.6;

}  // namespace weir

#endif  // WEIR_PLAN_SYNTHESIS_SEARCH_THRESHOLD_H_
