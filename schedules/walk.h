// SPDX-License-Identifier: Apache-2.0
// Walks a schedule in an order that its dependencies allow.
#ifndef WEIR_SCHEDULES_WALK_H_
#define WEIR_SCHEDULES_WALK_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "schedules/dependencies.h"
#include "schedules/schedule.h"

namespace weir {

// Calls visit(rank, position) once for every action that can run, each after
// the actions before it on its rank and those it awaits; the two of an
// overlapped pair one after the other, when both can run. Returns how many
// actions of each rank ran: fewer than it has where the order deadlocks.
// REQUIRES: as Dependencies.
std::vector<int32_t> WalkSchedule(
    const Schedule& schedule, const Dependencies& dependencies,
    const std::function<void(int rank, int32_t position)>& visit);

// When every action runs at these costs: the longest path through its
// dependencies, exact where transfers share no bandwidth. [rank][position].
struct WalkTimes {
  std::vector<std::vector<double>> start, end;

  double makespan() const;  // end of the last action
  // Largest time on one rank from its first start to its last end: the cost of
  // a batch where batches may overlap (Zero Bubble, 2024, section 2).
  double span() const;
};

// REQUIRES: ValidateSchedule(schedule) is OK.
WalkTimes TimedWalk(const Schedule& schedule, const PassCosts& costs);

}  // namespace weir

#endif  // WEIR_SCHEDULES_WALK_H_
