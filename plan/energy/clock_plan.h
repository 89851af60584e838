// SPDX-License-Identifier: Apache-2.0
// A clock for every pass.
#ifndef WEIR_PLAN_ENERGY_CLOCK_PLAN_H_
#define WEIR_PLAN_ENERGY_CLOCK_PLAN_H_

#include <vector>

#include "plan/energy/pass_graph.h"

namespace weir::plan {

struct ClockPlan {
  std::vector<ClockPoint> clocks;  // by pass
  // [pass]: index into the choices of its curve; empty for TopClocks.
  std::vector<int> choices;
  Ticks ticks = 0;          // of the iteration, with rounded durations
  double added_joules = 0;  // of all passes, without waiting GPUs
  // With measured durations; the same as ticks unless they were rounded.
  double seconds = 0;
  double busy_seconds = 0, busy_joules = 0;  // of all passes

  // Returns the energy of one iteration that takes `seconds`; every rank waits
  // for the rest of it.
  double JoulesIn(double iteration_seconds, int num_ranks,
                  double blocking_watts) const {
    return busy_joules +
           blocking_watts * (num_ranks * iteration_seconds - busy_seconds);
  }
};

// Chooses the clock of every pass so that no event happens later than at
// `times`: in order of dependencies, the clock that adds the least energy in
// the time from the pass's actual start to the planned time of its end. What
// earlier passes gain by rounding is left to later ones. Then gives passes what
// is left before the next ones must start.
// Clocks far above the hull of a pass are also tried without: where passes wait
// for each other, all of them take the same clock between two corners, and it
// is better if some take one corner and some the other. Returns the plan that
// adds the least energy.
ClockPlan ChooseClocks(const PassGraph& graph, const std::vector<Ticks>& times);

// Returns a plan that ends by `end`, between the ends of the two: the clocks of
// one before those of the other, as far as time permits, and other ones between
// them; in the order that adds less energy. Its energy is about that on the
// line between both.
ClockPlan JoinPlans(const PassGraph& graph, const ClockPlan& slow,
                    const ClockPlan& fast, Ticks end);

// Returns the plan with the highest clock of every pass.
ClockPlan TopClocks(const PassGraph& graph);

}  // namespace weir::plan

#endif  // WEIR_PLAN_ENERGY_CLOCK_PLAN_H_
