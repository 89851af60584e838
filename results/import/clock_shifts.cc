// SPDX-License-Identifier: Apache-2.0
#include "results/import/clock_shifts.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/types/span.h"
#include "base/infinity.h"
#include "results/import/clock_groups.h"
#include "results/import/difference_limits.h"
#include "results/import/linked_clocks.h"

namespace weir::results {
namespace {

// Returns the clocks of each set that orders link.
std::vector<std::vector<int>> SetsOf(const ClockLimits& limits) {
  const int n = limits.num_clocks();
  LinkedClocks linked(n);
  for (int i = 0; i < n; ++i) {
    const double* slack =
        limits.slack_seconds().data() + static_cast<size_t>(i) * n;
    for (int j = 0; j < n; ++j) {
      if (slack[j] < kInfinity) linked.Link(i, j);
    }
  }
  return linked.Sets();
}

// Returns the limits of the clocks.
DifferenceLimits LimitsOf(const ClockLimits& limits,
                          const std::vector<int>& clocks) {
  DifferenceLimits part(static_cast<int>(clocks.size()));
  for (int i = 0; i < part.size(); ++i) {
    const double* slack = limits.slack_seconds().data() +
                          static_cast<size_t>(clocks[i]) * limits.num_clocks();
    for (int j = 0; j < part.size(); ++j) {
      if (i != j) part.at(i, j) = slack[clocks[j]];
    }
  }
  return part;
}

// Returns the shift that most clocks have, of several the one of the first.
double MostFrequent(const std::vector<double>& seconds) {
  std::vector<double> sorted = seconds;
  std::sort(sorted.begin(), sorted.end());
  const auto count = [&](double value) {
    return std::upper_bound(sorted.begin(), sorted.end(),
                            value + kResolutionSeconds) -
           std::lower_bound(sorted.begin(), sorted.end(),
                            value - kResolutionSeconds);
  };
  return *std::max_element(
      seconds.begin(), seconds.end(),
      [&](double a, double b) { return count(a) < count(b); });
}

// Returns the clocks of each shift, the smallest shifts first.
std::vector<std::vector<int>> ByShift(const std::vector<double>& x) {
  std::vector<int> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return x[a] < x[b]; });
  std::vector<std::vector<int>> sets;
  for (const int i : order) {
    const bool is_same =
        !sets.empty() && x[i] - x[sets.back()[0]] <= kResolutionSeconds;
    if (!is_same) sets.emplace_back();
    sets.back().push_back(i);
  }
  std::stable_sort(sets.begin(), sets.end(), [&](const auto& a, const auto& b) {
    return std::abs(x[a[0]]) < std::abs(x[b[0]]);
  });
  return sets;
}

// Lets clocks stay that may, whatever the others do: those with the same shift
// together, and if that is impossible one after the other.
void KeepClocks(const DifferenceLimits& limits, std::vector<double>* seconds) {
  std::vector<double>& x = *seconds;
  std::vector<bool> stays(x.size());
  // Returns true if all limits still hold when this clock is not moved.
  const auto may_stay = [&](int i) {
    for (int j = 0; j < limits.size(); ++j) {
      const double shift = stays[j] ? 0 : x[j];
      if (-shift > limits.at(i, j) + kResolutionSeconds / 10) return false;
      if (shift > limits.at(j, i) + kResolutionSeconds / 10) return false;
    }
    return true;
  };
  for (const std::vector<int>& same : ByShift(x)) {
    for (const int i : same) stays[i] = true;
    if (std::all_of(same.begin(), same.end(), may_stay)) {
      for (const int i : same) x[i] = 0;
      continue;
    }
    for (const int i : same) stays[i] = false;
    for (const int i : same) {
      stays[i] = true;
      if (may_stay(i)) {
        x[i] = 0;
      } else {
        stays[i] = false;
      }
    }
  }
}

// Requires: `closed` has what was known before any difference was chosen.
double UncertaintyOf(const DifferenceLimits& closed,
                     const std::vector<double>& seconds) {
  double uncertainty = 0;
  for (int i = 0; i < closed.size(); ++i) {
    if (seconds[i] == 0) continue;
    double least = -kInfinity, most = kInfinity;
    for (int j = 0; j < closed.size(); ++j) {
      if (seconds[j] != 0) continue;
      least = std::max(least, -closed.at(j, i));
      most = std::min(most, closed.at(i, j));
    }
    uncertainty =
        std::max({uncertainty, most - seconds[i], seconds[i] - least});
  }
  return uncertainty <= kResolutionSeconds ? 0 : uncertainty;
}

// Returns the shifts of clocks that orders link, or a contradiction of them.
ClockShifts SolveLinked(DifferenceLimits limits) {
  ClockShifts shifts;
  const DifferenceLimits::Solution any = limits.AnySolution();
  if (!any.cycle.empty()) {
    shifts.contradiction = any.cycle;
    shifts.contradiction_seconds =
        -any.cycle_sum / static_cast<double>(any.cycle.size());
    return shifts;
  }
  limits.Close(any.x);
  shifts.seconds = ClockGroups(limits).JoinAll();
  const double unmoved = MostFrequent(shifts.seconds);
  for (double& seconds : shifts.seconds) {
    seconds -= unmoved;
    if (std::abs(seconds) <= kResolutionSeconds) seconds = 0;
  }
  KeepClocks(limits, &shifts.seconds);
  shifts.uncertainty_seconds = UncertaintyOf(limits, shifts.seconds);
  return shifts;
}

}  // namespace

ClockLimits::ClockLimits(int num_clocks)
    : num_clocks_(num_clocks),
      slack_seconds_(static_cast<size_t>(num_clocks) * num_clocks, kInfinity) {}

void ClockLimits::AddOrder(int first, int second, double slack_seconds) {
  double& slack =
      slack_seconds_[static_cast<size_t>(first) * num_clocks_ + second];
  slack = std::min(slack, slack_seconds);
}

ClockLimits ClockLimits::Relaxed(double seconds) const {
  ClockLimits relaxed = *this;
  for (double& slack : relaxed.slack_seconds_) slack += seconds;
  return relaxed;
}

ClockShifts SolveClocks(const ClockLimits& limits) {
  ClockShifts shifts;
  shifts.seconds.assign(limits.num_clocks(), 0);
  for (const std::vector<int>& clocks : SetsOf(limits)) {
    if (clocks.size() < 2) continue;
    ClockShifts linked = SolveLinked(LimitsOf(limits, clocks));
    if (!linked.contradiction.empty()) {
      for (int& clock : linked.contradiction) clock = clocks[clock];
      return linked;
    }
    for (size_t i = 0; i < clocks.size(); ++i) {
      shifts.seconds[clocks[i]] = linked.seconds[i];
    }
    shifts.uncertainty_seconds =
        std::max(shifts.uncertainty_seconds, linked.uncertainty_seconds);
  }
  return shifts;
}

}  // namespace weir::results
