// SPDX-License-Identifier: Apache-2.0
// The smallest change of order that ends a deadlock.
#ifndef WEIR_SCHEDULES_REORDER_H_
#define WEIR_SCHEDULES_REORDER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "schedules/comm_program.h"
#include "schedules/deadlock.h"

namespace weir {

struct Reordering {
  Place moved;         // the action that moves
  int32_t position;    // where it stands afterwards
  bool swaps = false;  // and the one that stood there takes its place
  std::string text;    // "move 1RECV_F1 of rank 1 from position 5 to 4, ..."
};

// Tries to take, on a rank of the cycle, the awaited action before the one that
// waits, that one behind the awaited, or both into each other's place: the
// shortest move that `runs`. Nothing when none does, or the program is too
// large to try.
std::optional<Reordering> FindReordering(
    const CommProgram& program, const std::vector<Wait>& cycle,
    const std::function<bool(const CommProgram&)>& runs);

}  // namespace weir

#endif  // WEIR_SCHEDULES_REORDER_H_
