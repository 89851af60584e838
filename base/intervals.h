// SPDX-License-Identifier: Apache-2.0
// Intervals of time. A part of an interval is measured by its own length, never
// by the whole less the other parts: such differences are not 0 where they
// should be, and may be negative.
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

// Takes out of `gaps` what `covers` (which may overlap) cover, and returns the
// length of what was taken.
double TakeOut(std::vector<Interval> covers, std::vector<Interval>* gaps);

}  // namespace weir

#endif  // WEIR_BASE_INTERVALS_H_
