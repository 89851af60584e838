// SPDX-License-Identifier: Apache-2.0
#include "plan/energy/duration_curve.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace weir::plan {
namespace {

std::vector<ClockChoice> ParetoOf(std::vector<ClockChoice> choices) {
  std::sort(choices.begin(), choices.end(),
            [](const ClockChoice& a, const ClockChoice& b) {
              return std::tie(a.ticks, a.added_joules, a.point.megahertz) <
                     std::tie(b.ticks, b.added_joules, b.point.megahertz);
            });
  std::vector<ClockChoice> best;
  for (const ClockChoice& choice : choices) {
    if (best.empty() || choice.added_joules < best.back().added_joules) {
      best.push_back(choice);
    }
  }
  return best;
}

// Returns whether `middle` is on or above the line from a to b.
bool IsAbove(const ClockChoice& a, const ClockChoice& middle,
             const ClockChoice& b) {
  return (middle.added_joules - a.added_joules) *
             static_cast<double>(b.ticks - a.ticks) >=
         (b.added_joules - a.added_joules) *
             static_cast<double>(middle.ticks - a.ticks);
}

}  // namespace

Ticks TickScale::TicksOf(double seconds) const {
  if (unit_seconds > 0) {
    // The tolerance keeps a time that is a multiple of the unit.
    const double units = std::floor(seconds / unit_seconds + 1e-9);
    seconds = std::max(units, 1.0) * unit_seconds;
  }
  return std::max<Ticks>(std::llround(seconds * ticks_per_second), 1);
}

double DurationCurve::JoulesOf(Ticks duration) const {
  if (duration >= ticks.back()) return joules.back();
  const auto after = std::upper_bound(ticks.begin(), ticks.end(), duration);
  const size_t i = std::max<ptrdiff_t>(after - ticks.begin(), 1) - 1;
  const double part = static_cast<double>(duration - ticks[i]) /
                      static_cast<double>(ticks[i + 1] - ticks[i]);
  return joules[i] + part * (joules[i + 1] - joules[i]);
}

DurationCurve CurveOf(const std::vector<ClockPoint>& points,
                      double blocking_watts, const TickScale& scale) {
  std::vector<ClockChoice> choices;
  for (const ClockPoint& point : points) {
    choices.push_back({point, scale.TicksOf(point.seconds),
                       point.joules - blocking_watts * point.seconds});
  }
  DurationCurve curve;
  curve.top = *std::max_element(choices.begin(), choices.end(),
                                [](const ClockChoice& a, const ClockChoice& b) {
                                  return a.point.megahertz < b.point.megahertz;
                                });
  curve.choices = ParetoOf(std::move(choices));
  std::vector<ClockChoice> hull;
  for (const ClockChoice& choice : curve.choices) {
    while (hull.size() >= 2 &&
           IsAbove(hull[hull.size() - 2], hull.back(), choice)) {
      hull.pop_back();
    }
    hull.push_back(choice);
  }
  for (size_t i = 0; i < hull.size(); ++i) {
    curve.ticks.push_back(hull[i].ticks);
    curve.joules.push_back(hull[i].added_joules);
    if (i == 0) continue;
    const double watts = (hull[i - 1].added_joules - hull[i].added_joules) /
                         scale.SecondsOf(hull[i].ticks - hull[i - 1].ticks);
    if (i == 1) curve.steepest_watts = watts;
    const auto slope = static_cast<Slope>(
        std::min(std::round(watts * scale.slopes_per_watt), kMostSlopes));
    curve.slopes.push_back(
        curve.slopes.empty() ? slope : std::min(slope, curve.slopes.back()));
  }
  return curve;
}

}  // namespace weir::plan
