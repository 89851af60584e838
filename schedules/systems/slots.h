// SPDX-License-Identifier: Apache-2.0
// Orders of pipelines that visit ranks in both directions: several routes in
// opposite directions (Chimera, BitPipe), or one route with alternating
// directions (Hanayo).
//
// Time is divided into slots of one forward or one backward of a stage. Every
// microbatch moves one stage per slot, forward and then back. On each route, a
// microbatch enters two slots after the previous one. Opposite directions use a
// rank in slots of opposite parity, so no two actions need the same slot, and a
// rank executes its actions in the order of their slots.
#ifndef WEIR_SCHEDULES_SYSTEMS_SLOTS_H_
#define WEIR_SCHEDULES_SYSTEMS_SLOTS_H_

#include "schedules/schedule.h"

namespace weir::schedules {

// A unit is a group of microbatches that run together before the next unit
// starts. There is no gap between units if forward and backward take the same
// time.
struct SlotUnit {
  int num_forwards;      // of a route in a unit
  int forward_span = 1;  // microbatches per forward; 1 per backward
};

// Sets every rank's actions. With S stages, q forwards of span a in a unit and
// unit u, the i-th forward of a unit runs in stage s in slot u(1+a)S + s + 2i,
// the i-th backward in slot u(1+a)S + 2S-1-s + 2(i mod q) + S(i div q). A last
// unit that fits without spans uses none. Requires: routes and counts are set.
void OrderBySlots(const SlotUnit& unit, Schedule* schedule);

// Returns the same stages in the opposite direction.
std::vector<int> Reversed(std::vector<int> route);

}  // namespace weir::schedules

#endif  // WEIR_SCHEDULES_SYSTEMS_SLOTS_H_
