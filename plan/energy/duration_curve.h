// SPDX-License-Identifier: Apache-2.0
// Energy of a pass as a function of its duration. Durations are whole ticks and
// slopes whole units, so that the frontier is computed without rounding
// errors.
#ifndef WEIR_PLAN_ENERGY_DURATION_CURVE_H_
#define WEIR_PLAN_ENERGY_DURATION_CURVE_H_

#include <cstdint>
#include <vector>

#include "plan/energy/clock_profile.h"

namespace weir::plan {

using Ticks = int64_t;
// Decrease of energy per time, in units of 1 / TickScale::slopes_per_watt.
using Slope = int64_t;

// How durations become ticks.
struct TickScale {
  double ticks_per_second = 1e12;
  // Durations are rounded down to multiples of it, as Perseus does with 1 ms;
  // 0: not at all. A duration is at least one unit.
  double unit_seconds = 0;
  // Units of slopes: microwatts, or more if the slopes of all passes of a graph
  // could otherwise overflow (GraphOfPasses).
  double slopes_per_watt = 1e6;

  Ticks TicksOf(double seconds) const;
  double SecondsOf(Ticks ticks) const {
    return static_cast<double>(ticks) / ticks_per_second;
  }
};

// A clock that a pass may have.
struct ClockChoice {
  ClockPoint point;
  Ticks ticks = 0;
  // Energy minus the energy of a GPU that waits as long: what a pass adds to
  // an iteration whose total time is given.
  double added_joules = 0;
};

// The lower convex hull of the choices, from the fastest to the one that adds
// the least energy. A longer pass saves nothing.
struct DurationCurve {
  // Choices that no other one beats in both time and energy; ascending ticks,
  // descending energy.
  std::vector<ClockChoice> choices;
  ClockChoice top;             // at the highest clock
  std::vector<Ticks> ticks;    // corners of the hull, ascending
  std::vector<double> joules;  // added, at the corners
  // slopes[i]: decrease of energy per time between corners i and i + 1; not
  // ascending.
  std::vector<Slope> slopes;
  double steepest_watts = 0;  // the first slope, not rounded

  Ticks shortest() const { return ticks.front(); }
  Ticks longest() const { return ticks.back(); }
  // Returns the added energy of a duration, linear between corners. Requires:
  // duration >= shortest().
  double JoulesOf(Ticks duration) const;
  // Returns what a choice adds more than the hull at its duration.
  double ExcessOf(int choice) const {
    return choices[choice].added_joules - JoulesOf(choices[choice].ticks);
  }
};

// Slopes of all passes of a graph add up to at most this.
inline constexpr double kMostSlopes = 4e17;

// Requires: points is not empty.
DurationCurve CurveOf(const std::vector<ClockPoint>& points,
                      double blocking_watts, const TickScale& scale);

}  // namespace weir::plan

#endif  // WEIR_PLAN_ENERGY_DURATION_CURVE_H_
