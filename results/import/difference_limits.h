// SPDX-License-Identifier: Apache-2.0
// Limits of the differences of unknowns, such as the shifts of clocks.
#ifndef WEIR_RESULTS_IMPORT_DIFFERENCE_LIMITS_H_
#define WEIR_RESULTS_IMPORT_DIFFERENCE_LIMITS_H_

#include <cstddef>
#include <vector>

namespace weir::results {

// Below this, differences are errors of rounding.
inline constexpr double kResolutionSeconds = 1e-9;

// Square matrix of upper limits: x[i] - x[j] <= at(i, j) for unknowns x;
// infinity without a limit.
class DifferenceLimits {
 public:
  explicit DifferenceLimits(int size);

  int size() const { return size_; }
  double& at(int i, int j) {
    return limits_[static_cast<size_t>(i) * size_ + j];
  }
  double at(int i, int j) const {
    return limits_[static_cast<size_t>(i) * size_ + j];
  }

  struct Solution {
    std::vector<double> x;
    // Not empty: unknowns of which each limits the one before it, and the first
    // the last, with limits that add up to `cycle_sum`, which is below 0. There
    // is no solution then.
    std::vector<int> cycle;
    double cycle_sum = 0;
  };
  // Returns unknowns that keep the limits, except for errors of rounding
  // (Bellman and Ford). Time is linear in the number of limits for each round,
  // of which few are needed.
  Solution AnySolution() const;

  // Adds what follows from limits of other pairs (Johnson's algorithm).
  // Requires: `x` keeps the limits, except for errors of rounding. These are
  // removed: around a cycle of negative length they would grow exponentially.
  void Close(const std::vector<double>& x);

 private:
  struct Limit {
    int to = 0;
    double most = 0;
  };
  // [i]: the unknowns that limit i.
  std::vector<std::vector<Limit>> Neighbours() const;

  int size_;
  std::vector<double> limits_;
};

}  // namespace weir::results

#endif  // WEIR_RESULTS_IMPORT_DIFFERENCE_LIMITS_H_
