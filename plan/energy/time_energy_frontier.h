// SPDX-License-Identifier: Apache-2.0
// The time-energy frontier of an iteration: for each deadline, the durations
// of all passes with the least energy, if a duration may lie between those of
// two clocks (at a proportional energy).
//
// This is the project crashing problem. As in Perseus (Chung et al., SOSP 2024,
// section 4), the iteration is shortened along a minimum cut of the critical
// passes, whose capacities are the energy that shortening a pass costs per
// second, with what lengthening one gives back as lower bounds. Perseus
// shortens by a fixed time; here each step is as long as its cut is exact
// (Phillips and Dessouky, Solving the project time/cost tradeoff problem using
// the minimal cut concept, Management Science 24(4), 1977; Fulkerson, A network
// flow computation for project cost curves, 1961). The flow of a step is
// feasible in the next one, so that only its increase has to be found (Boykov
// and Kolmogorov's algorithm, Boost Graph).
#ifndef WEIR_PLAN_ENERGY_TIME_ENERGY_FRONTIER_H_
#define WEIR_PLAN_ENERGY_TIME_ENERGY_FRONTIER_H_

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "plan/energy/pass_graph.h"

namespace weir::plan {

// A piece of the frontier on which energy is linear in time.
struct FrontierPiece {
  // The iteration takes from `shortest` to `longest` ticks.
  Ticks longest = 0, shortest = 0;
  // Energy that one second less costs, apart from waiting GPUs.
  Slope slope = 0;
  const std::vector<Ticks>* times = nullptr;  // of events, at `longest`
  const std::vector<char>* moves = nullptr;   // 1: events that come earlier

  // Returns the times of all events. Requires: shortest <= end <= longest.
  std::vector<Ticks> TimesAt(Ticks end) const;
};

// Calls `visit` with the pieces from the longest time, at which every pass adds
// the least energy, to the shortest possible one, as long as it returns true.
// Returns Internal if the algorithm is found to be wrong.
absl::Status WalkFrontier(
    const PassGraph& graph,
    const std::function<bool(const FrontierPiece&)>& visit);

// Returns the energy that all passes add at these times of events, each as long
// as its start and end allow.
double AddedJoules(const PassGraph& graph, const std::vector<Ticks>& times);

}  // namespace weir::plan

#endif  // WEIR_PLAN_ENERGY_TIME_ENERGY_FRONTIER_H_
