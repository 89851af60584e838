// SPDX-License-Identifier: Apache-2.0
// Intervals of time. Lengths are summed over parts instead of subtracting parts
// from the whole, because rounding can make such differences negative or not
// exactly 0.
#ifndef WEIR_BASE_INTERVALS_H_
#define WEIR_BASE_INTERVALS_H_

#include <algorithm>
#include <vector>

namespace weir {

struct Interval {
  double begin = 0, end = 0;

  // Returns 0 for an interval that ends before it begins.
  double length() const { return std::max(end - begin, 0.0); }
  Interval Clip(const Interval& to) const {
    return {std::max(begin, to.begin), std::min(end, to.end)};
  }
};

double LengthOf(const std::vector<Interval>& intervals);

// Removes from `gaps` everything that `covers` cover and returns the removed
// length. The covers may overlap.
double TakeOut(std::vector<Interval> covers, std::vector<Interval>* gaps);

}  // namespace weir

#endif  // WEIR_BASE_INTERVALS_H_
