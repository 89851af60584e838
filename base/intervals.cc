// SPDX-License-Identifier: Apache-2.0
#include "base/intervals.h"

#include <utility>

namespace weir {

double LengthOf(const std::vector<Interval>& intervals) {
  double length = 0;
  for (const Interval& interval : intervals) length += interval.length();
  return length;
}

double TakeOut(std::vector<Interval> covers, std::vector<Interval>* gaps) {
  std::sort(
      covers.begin(), covers.end(),
      [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  double length = 0;
  std::vector<Interval> left;
  for (Interval gap : *gaps) {
    for (const Interval& cover : covers) {
      const Interval taken = cover.Clip(gap);
      if (!(taken.length() > 0)) continue;
      length += taken.length();
      if (taken.begin > gap.begin) left.push_back({gap.begin, taken.begin});
      gap.begin = taken.end;
    }
    if (gap.length() > 0) left.push_back(gap);
  }
  *gaps = std::move(left);
  return length;
}

}  // namespace weir
