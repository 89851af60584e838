// SPDX-License-Identifier: Apache-2.0
// Walks a schedule in an order that its dependencies allow.
#ifndef WEIR_SCHEDULES_WALK_H_
#define WEIR_SCHEDULES_WALK_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "schedules/dependencies.h"
#include "schedules/schedule.h"

namespace weir::schedules {

// Calls visit(rank, position) once for every action that can run, after the
// preceding actions of its rank and those it waits for. The two actions of an
// overlapped pair are visited consecutively, when both can run. Returns the
// number of actions that ran by rank: fewer than it has if the order deadlocks.
// Requires: see Dependencies.
std::vector<int32_t> WalkSchedule(
    const Schedule& schedule, const Dependencies& dependencies,
    const std::function<void(int rank, int32_t position)>& visit);

// Start and end times of every action at given costs, by [rank][position]:
// longest paths through the dependencies, exact if transfers share no
// bandwidth.
struct WalkTimes {
  std::vector<std::vector<double>> start, end;

  double makespan() const;  // end of the last action
  // Returns the longest time on one rank from its first start to its last end:
  // the cost of a batch if batches may overlap (Zero Bubble, 2024, section 2).
  double span() const;
};

// Requires: ValidateSchedule(schedule) is OK.
WalkTimes TimedWalk(const Schedule& schedule, const PassCosts& costs);

}  // namespace weir::schedules

#endif  // WEIR_SCHEDULES_WALK_H_
