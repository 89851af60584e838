// SPDX-License-Identifier: Apache-2.0
// Finds the smallest reordering that ends a deadlock.
#ifndef WEIR_SCHEDULES_COMM_REORDER_H_
#define WEIR_SCHEDULES_COMM_REORDER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "schedules/comm/comm_program.h"
#include "schedules/comm/deadlock.h"

namespace weir::schedules {

// Moves an action to another position in its rank's order.
struct Move {
  Place from;
  int32_t to;          // new position
  bool swaps = false;  // swaps it with the action there
};

void ApplyMove(const Move& move, CommProgram* program);

struct Reordering {
  // In order of application; empty if none was found.
  std::vector<Move> moves;
  // "move 1RECV_F1 of rank 1 from position 5 to 4, before 1SEND_F0". The
  // positions of each move are those after the preceding moves.
  std::string text;
  // If none was found: the number of moves up to which combinations were tried,
  // and whether there were too many combinations of that number to try all.
  int num_moves = 0;
  bool was_cut = false;
};

// Returns the shortest cycle in which a changed program deadlocks, empty if it
// runs; std::nullopt if the program is no longer meaningful.
using FindCycle =
    std::function<std::optional<std::vector<Wait>>(const CommProgram&)>;

// Tries, on the ranks of the cycle, to move an awaited action before the
// waiting one, to move the waiting action after the awaited one, or to swap
// them; then does the same with the remaining cycle, breadth first by the
// number of moves. Among equal numbers of moves, those that go no further than
// the cycle requires come first, then short ones. If a program is too large to
// try everything, the result ends the deadlock but need not be the smallest.
Reordering FindReordering(const CommProgram& program,
                          const std::vector<Wait>& cycle,
                          const FindCycle& find_cycle);

}  // namespace weir::schedules

#endif  // WEIR_SCHEDULES_COMM_REORDER_H_
