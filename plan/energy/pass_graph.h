// SPDX-License-Identifier: Apache-2.0
// The passes of one iteration as a graph whose arcs are passes and
// dependencies.
#ifndef WEIR_PLAN_ENERGY_PASS_GRAPH_H_
#define WEIR_PLAN_ENERGY_PASS_GRAPH_H_

#include <vector>

#include "absl/status/statusor.h"
#include "plan/energy/clock_profile.h"
#include "plan/energy/duration_curve.h"
#include "schedules/schedule.h"

namespace weir::plan {

// A pass of the schedule.
struct PassOfGraph {
  int rank = 0;
  schedules::Action action{};
  int curve = 0;  // index of the pass's curve
};

// An arc from one event to another, which happens no earlier. The event of a
// pass's arc is its start or end.
struct PassArc {
  int from = 0, to = 0;
  int pass = -1;  // -1: a dependency, without duration
};

struct PassGraph {
  int num_ranks = 0;
  int num_events = 0;
  int source = 0, sink = 0;  // start and end of the iteration
  std::vector<PassOfGraph> passes;
  std::vector<PassArc> arcs;
  std::vector<int> order;  // all events, each after those it waits for
  // By event, indices of the arcs that leave it.
  std::vector<std::vector<int>> leaving;
  std::vector<DurationCurve> curves;
  double slopes_per_watt = 1e6;  // units of their slopes

  // Returns the earliest times of all events if passes have these durations.
  std::vector<Ticks> EarliestTimes(const std::vector<Ticks>& durations) const;
  const DurationCurve& CurveOfPass(int pass) const {
    return curves[passes[pass].curve];
  }
};

// Passes at most; larger graphs take too long.
inline constexpr int kMaxClockedPasses = 20'000;

// A pass of k microbatches takes k times as long, and its energy is k times as
// high. Returns InvalidArgument for a schedule without flush, with several
// batches, offloads or overlapped passes, for other stages than those of the
// profile, and for passes that the profile does not have.
absl::StatusOr<PassGraph> GraphOfPasses(const schedules::Schedule& schedule,
                                        const ClockProfile& profile,
                                        double blocking_watts,
                                        const TickScale& scale);

}  // namespace weir::plan

#endif  // WEIR_PLAN_ENERGY_PASS_GRAPH_H_
