// SPDX-License-Identifier: Apache-2.0
// Orders for pipelines that fold onto the same ranks: several routes in
// opposite directions (Chimera, BitPipe), or one route that runs to and fro
// (Hanayo).
//
// Time is cut into slots of one forward or one backward of a stage. Every
// microbatch moves one stage per slot, forward and then back, and on each route
// a microbatch enters two slots after the one before it. As opposite directions
// meet a rank in slots of opposite parity, no two actions want one slot, and a
// rank does what it does in the order of the slots.
#ifndef WEIR_SCHEDULES_SYSTEMS_SLOTS_H_
#define WEIR_SCHEDULES_SYSTEMS_SLOTS_H_

#include "schedules/schedule.h"

namespace weir {

// A unit is what fits together before the next unit of microbatches starts,
// without a gap where forward and backward take the same time.
struct SlotUnit {
  int num_forwards;      // of a route in a unit
  int forward_span = 1;  // microbatches in one forward; backwards take one
};

// Gives every rank its actions. With S stages, q forwards of span a in a unit
// and unit u, the i-th forward of a unit runs in stage s in slot
// u(1+a)S + s + 2i, the i-th backward in slot
// u(1+a)S + 2S-1-s + 2(i mod q) + S(i div q). A last unit that needs no spans
// to fit has none.
// REQUIRES: routes and counts are set.
void OrderBySlots(const SlotUnit& unit, Schedule* schedule);

// The same stages in the opposite direction.
std::vector<int> Reversed(std::vector<int> route);

}  // namespace weir

#endif  // WEIR_SCHEDULES_SYSTEMS_SLOTS_H_
