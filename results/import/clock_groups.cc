// SPDX-License-Identifier: Apache-2.0
#include "results/import/clock_groups.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/infinity.h"

namespace weir::results {
namespace {

// Where the difference of two clocks may be.
struct Interval {
  double least = -kInfinity, most = kInfinity;

  bool HasZero() const {
    return least <= kResolutionSeconds && most >= -kResolutionSeconds;
  }
  bool IsOpen() const { return least == -kInfinity || most == kInfinity; }
  double Choice() const {
    if (HasZero()) return 0;
    if (least == -kInfinity) return most;
    if (most == kInfinity) return least;
    return (least + most) / 2;
  }
  // From equal clocks.
  double Distance() const {
    return std::abs(IsOpen() ? Choice() : (least + most) / 2);
  }
};

}  // namespace

ClockGroups::ClockGroups(const DifferenceLimits& closed)
    : stride_(closed.size()),
      below_(static_cast<size_t>(stride_) * stride_, kInfinity),
      above_(below_) {
  for (int i = 0; i < stride_; ++i) {
    groups_.push_back({{{i, 0}}, {{i, 0}}});
    for (int j = 0; j < stride_; ++j) {
      if (i != j) Limit(i, j) = closed.at(i, j);
    }
  }
  const std::vector<double> none(stride_, kInfinity);
  Tighten(none, none);
}

void ClockGroups::Tighten(const std::vector<double>& to,
                          const std::vector<double>& from) {
  narrowest_.assign(size(), kInfinity);
  for (int i = 0; i < size(); ++i) {
    double* below = &below_[Index(i, 0)];
    double* above = &above_[Index(i, 0)];
    const double to_i = to[i], from_i = from[i];
    double narrowest = kInfinity;
    for (int j = i + 1; j < size(); ++j) {
      // Errors of rounding must not add up.
      const double less = to_i + from[j], more = to[j] + from_i;
      const double new_below =
          less < below[j] - kResolutionSeconds / 10 ? less : below[j];
      const double new_above =
          more < above[j] - kResolutionSeconds / 10 ? more : above[j];
      below[j] = new_below;
      above[j] = new_above;
      narrowest = std::min(narrowest, new_below + new_above);
    }
    narrowest_[i] = narrowest;
  }
}

ClockGroups::Join ClockGroups::Next() {
  const double width = *std::min_element(narrowest_.begin(), narrowest_.end());
  // Without pairs with both limits, any with one.
  const bool is_open = width == kInfinity;
  const double widest = width + kResolutionSeconds;
  Join best;
  double best_distance = kInfinity;
  std::pair<int, int> best_clocks;
  for (int u = 0; u < size(); ++u) {
    if (!is_open && narrowest_[u] > widest) continue;
    for (int v = u + 1; v < size(); ++v) {
      const double below = below_[Index(u, v)], above = above_[Index(u, v)];
      if (!is_open && below + above > widest) continue;
      if (below == kInfinity && above == kInfinity) continue;
      for (const Member& a : groups_[u].distinct) {
        for (const Member& b : groups_[v].distinct) {
          const double ahead = b.ahead - a.ahead;
          const Interval interval = {-below + ahead, above + ahead};
          const double distance = interval.Distance();
          const auto clocks = std::minmax(a.clock, b.clock);
          const double farther = distance - best_distance;
          const bool is_better = best.u < 0 || farther < -kResolutionSeconds ||
                                 (farther <= kResolutionSeconds &&
                                  std::pair<int, int>(clocks) < best_clocks);
          if (!is_better) continue;
          best = {u, v, interval.Choice() - ahead};
          best_distance = distance;
          best_clocks = clocks;
        }
      }
      // The difference of such groups is known.
      if (!is_open && below + above <= kResolutionSeconds) return best;
    }
  }
  return best;
}

void ClockGroups::Apply(const Join& join) {
  const auto [u, v, difference] = join;
  std::vector<double> to(size()), from(size());
  for (int i = 0; i < size(); ++i) {
    const double to_u = i == u ? 0 : Limit(i, u),
                 to_v = i == v ? 0 : Limit(i, v);
    const double from_u = i == u ? 0 : Limit(u, i);
    const double from_v = i == v ? 0 : Limit(v, i);
    to[i] = std::min(to_u, to_v + difference);
    from[i] = std::min(from_u, from_v - difference);
  }
  for (int i = 0; i < size(); ++i) {
    if (i == u) continue;
    Limit(i, u) = to[i];
    Limit(u, i) = from[i];
  }
  Group& group = groups_[u];
  for (Member member : groups_[v].members) {
    member.ahead += difference;
    group.members.push_back(member);
  }
  for (Member member : groups_[v].distinct) {
    member.ahead += difference;
    const auto same = std::find_if(
        group.distinct.begin(), group.distinct.end(), [&](const Member& other) {
          return std::abs(other.ahead - member.ahead) <= kResolutionSeconds;
        });
    if (same == group.distinct.end()) {
      group.distinct.push_back(member);
    } else if (member.clock < same->clock) {
      *same = member;
    }
  }
  to[v] = to.back();
  to.pop_back();
  from[v] = from.back();
  from.pop_back();
  Remove(v);
  Tighten(to, from);
}

void ClockGroups::Remove(int v) {
  const int last = size() - 1;
  if (v != last) {
    groups_[v] = std::move(groups_[last]);
    for (int i = 0; i < last; ++i) {
      if (i == v) continue;
      Limit(i, v) = Limit(i, last);
      Limit(v, i) = Limit(last, i);
    }
  }
  groups_.pop_back();
}

std::vector<double> ClockGroups::JoinAll() {
  while (size() > 1) Apply(Next());
  std::vector<double> shifts(stride_);
  for (const Member& member : groups_[0].members) {
    shifts[member.clock] = member.ahead;
  }
  const double first = shifts.empty() ? 0 : shifts[0];
  for (double& shift : shifts) shift -= first;
  return shifts;
}

}  // namespace weir::results
