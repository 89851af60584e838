// SPDX-License-Identifier: Apache-2.0
#include "results/import/clock_shifts.h"

#include <algorithm>
#include <cmath>

#include "base/infinity.h"

namespace weir::results {
namespace {

// Below this, differences are errors of rounding.
constexpr double kResolutionSeconds = 1e-9;

// Square matrix of upper limits: x[i] - x[j] <= at(i, j) for shifts x.
class Limits {
 public:
  explicit Limits(const ClockLimits& limits)
      : n_(limits.num_clocks()), limit_(limits.slack_seconds()) {
    for (int i = 0; i < n_; ++i) at(i, i) = 0;
  }

  int size() const { return n_; }
  double& at(int i, int j) { return limit_[static_cast<size_t>(i) * n_ + j]; }
  double at(int i, int j) const {
    return limit_[static_cast<size_t>(i) * n_ + j];
  }

  // Adds what follows from limits of other pairs (Floyd and Warshall).
  // Requires: shifts `x` keep the limits, except for errors of rounding. These
  // are removed first: around a cycle of negative length they would grow
  // exponentially.
  void Close(const std::vector<double>& x) {
    for (int i = 0; i < n_; ++i) {
      for (int j = 0; j < n_; ++j) {
        at(i, j) = std::max(at(i, j) - x[i] + x[j], 0.0);
      }
    }
    for (int k = 0; k < n_; ++k) {
      for (int i = 0; i < n_; ++i) {
        const double first = at(i, k);
        if (first == kInfinity) continue;
        double* row = &at(i, 0);
        const double* next = &at(k, 0);
        for (int j = 0; j < n_; ++j) {
          row[j] = std::min(row[j], first + next[j]);
        }
      }
    }
    for (int i = 0; i < n_; ++i) {
      for (int j = 0; j < n_; ++j) at(i, j) += x[i] - x[j];
    }
  }

  // Sets x[v] - x[u]. Requires and keeps closed limits.
  void Fix(int u, int v, double difference) {
    std::vector<double> to_u(n_), to_v(n_), from_u(n_), from_v(n_);
    for (int i = 0; i < n_; ++i) {
      to_u[i] = at(i, u), to_v[i] = at(i, v);
      from_u[i] = at(u, i), from_v[i] = at(v, i);
    }
    for (int i = 0; i < n_; ++i) {
      const double by_u = to_u[i] - difference, by_v = to_v[i] + difference;
      double* row = &at(i, 0);
      for (int j = 0; j < n_; ++j) {
        const double limit = std::min(by_u + from_v[j], by_v + from_u[j]);
        // As above, errors of rounding must not add up.
        row[j] = limit < row[j] - kResolutionSeconds / 10 ? limit : row[j];
      }
    }
  }

 private:
  int n_;
  std::vector<double> limit_;
};

// Returns shifts that keep the limits, or finds clocks whose limits add up to
// less than 0 (Bellman and Ford).
std::vector<double> AnyShifts(const Limits& limits, ClockShifts* shifts) {
  const int n = limits.size();
  std::vector<double> x(n, 0);
  std::vector<int> because(n, -1);
  int changed = -1;
  for (int round = 0; round <= n; ++round) {
    changed = -1;
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j) {
        const double most = x[j] + limits.at(i, j);
        if (most >= x[i] - kResolutionSeconds) continue;
        x[i] = most;
        because[i] = j;
        changed = i;
      }
    }
    if (changed < 0) return x;
  }
  // After n steps back, the clock is in the cycle and not only behind it.
  int clock = changed;
  for (int i = 0; i < n; ++i) clock = because[clock];
  double sum = 0;
  int at = clock;
  do {
    shifts->contradiction.push_back(at);
    sum += limits.at(at, because[at]);
    at = because[at];
  } while (at != clock);
  shifts->contradiction_seconds =
      -sum / static_cast<double>(shifts->contradiction.size());
  return x;
}

// Two clocks u < v, and where x[v] - x[u] may be.
struct ClockPair {
  int u = -1, v = -1;
  double least = -kInfinity, most = kInfinity;

  bool MayBeEqual() const {
    return least <= kResolutionSeconds && most >= -kResolutionSeconds;
  }
  double Difference() const {
    if (MayBeEqual()) return 0;
    if (least == -kInfinity) return most;
    if (most == kInfinity) return least;
    return (least + most) / 2;
  }
  int num_open() const { return (least == -kInfinity) + (most == kInfinity); }
  double width() const { return num_open() > 0 ? 0 : most - least; }
  // From equal clocks.
  double Distance() const {
    return std::abs(num_open() > 0 ? Difference() : (least + most) / 2);
  }

  // With few open limits, narrow and near to equal clocks; of equal ones the
  // earlier.
  bool IsBefore(const ClockPair& other) const {
    if (num_open() != other.num_open()) return num_open() < other.num_open();
    const double wider = width() - other.width();
    if (std::abs(wider) > kResolutionSeconds) return wider < 0;
    return Distance() < other.Distance() - kResolutionSeconds;
  }
};

// Returns the pair that comes next, of clocks that are not in one group.
ClockPair NextPair(const Limits& limits, const std::vector<int>& group) {
  ClockPair best;
  double narrowest = kInfinity;
  for (int u = 0; u < limits.size(); ++u) {
    for (int v = u + 1; v < limits.size(); ++v) {
      if (group[u] == group[v]) continue;
      // Saves most of the time.
      const double width = limits.at(u, v) + limits.at(v, u);
      if (width > narrowest + 2 * kResolutionSeconds) continue;
      narrowest = std::min(narrowest, width);
      const ClockPair pair = {u, v, -limits.at(u, v), limits.at(v, u)};
      if (best.u < 0 || pair.IsBefore(best)) best = pair;
    }
  }
  return best;
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

// Requires: `closed` has what was known before any difference was chosen.
double UncertaintyOf(const Limits& closed, const std::vector<double>& seconds) {
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
  return uncertainty;
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
  Limits closed(limits);
  const std::vector<double> any = AnyShifts(closed, &shifts);
  if (!shifts.contradiction.empty()) return shifts;
  closed.Close(any);
  const int n = closed.size();
  Limits chosen = closed;
  std::vector<int> group(n);
  for (int i = 0; i < n; ++i) group[i] = i;
  for (int i = 1; i < n; ++i) {
    const ClockPair pair = NextPair(chosen, group);
    chosen.Fix(pair.u, pair.v, pair.Difference());
    std::replace(group.begin(), group.end(), int{group[pair.v]},
                 int{group[pair.u]});
  }
  for (int i = 0; i < n; ++i) shifts.seconds.push_back(chosen.at(i, 0));
  const double unmoved = MostFrequent(shifts.seconds);
  for (double& seconds : shifts.seconds) {
    seconds -= unmoved;
    if (std::abs(seconds) <= kResolutionSeconds) seconds = 0;
  }
  shifts.uncertainty_seconds = UncertaintyOf(closed, shifts.seconds);
  return shifts;
}

}  // namespace weir::results
