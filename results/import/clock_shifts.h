// SPDX-License-Identifier: Apache-2.0
// Shifts of clocks, from events on one clock that precede events on another.
#ifndef WEIR_RESULTS_IMPORT_CLOCK_SHIFTS_H_
#define WEIR_RESULTS_IMPORT_CLOCK_SHIFTS_H_

#include <vector>

namespace weir::results {

// Collects what is known about the clocks of a run.
class ClockLimits {
 public:
  explicit ClockLimits(int num_clocks);

  // Adds that an event on clock `first` precedes one on clock `second`, which
  // was recorded `slack_seconds` later (negative: earlier).
  void AddOrder(int first, int second, double slack_seconds);

  // Returns the same limits, of which each allows `seconds` more.
  ClockLimits Relaxed(double seconds) const;

  int num_clocks() const { return num_clocks_; }
  // [first * num_clocks + second]: the least slack, or infinity.
  const std::vector<double>& slack_seconds() const { return slack_seconds_; }

 private:
  int num_clocks_;
  std::vector<double> slack_seconds_;
};

struct ClockShifts {
  // Clocks whose orders contradict each other whatever the shifts, each of them
  // before the next one and the last before the first. Empty if shifts exist.
  std::vector<int> contradiction;
  // With the best shifts, one order of the contradiction is violated by this.
  double contradiction_seconds = 0;

  // [clock]: to add to its times. 0 for many.
  std::vector<double> seconds;
  // How far a shift may be from the true one, if those that are 0 are true;
  // infinite if a clock has a limit in one direction only.
  double uncertainty_seconds = 0;
};

// Returns shifts with which all orders hold, for each set of clocks that orders
// link. They follow from the least and the largest difference of two clocks,
// the pairs with the smallest interval first:
// - clocks that may be equal become equal;
// - others take the middle of the interval: if the shortest event that was
//   observed between them takes equally long in both directions, and nothing
//   else was waited for, as with messages of equal size, this is exact;
// - with a limit in one direction only, they move as far as it demands.
// The largest set of clocks that agree then stays unmoved. Finally, each other
// clock, starting with the smallest shift, stays unmoved if all limits still
// hold. The number of moved clocks need not be minimal.
// Time and memory are the cube and the square of the number of clocks.
ClockShifts SolveClocks(const ClockLimits& limits);

}  // namespace weir::results

#endif  // WEIR_RESULTS_IMPORT_CLOCK_SHIFTS_H_
