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

// One action of a rank goes elsewhere in the rank's order.
struct Move {
  Place from;
  int32_t to;          // where it stands afterwards
  bool swaps = false;  // and the one that stood there takes its place
};

void ApplyMove(const Move& move, CommProgram* program);

struct Reordering {
  // Made one after the other; empty: none was found.
  std::vector<Move> moves;
  // "move 1RECV_F1 of rank 1 from position 5 to 4, before 1SEND_F0"; each move
  // with the positions that the ones before it left.
  std::string text;
  // Where none was found: how many moves were tried together, and whether there
  // were too many of that number to try them all.
  int num_moves = 0;
  bool was_cut = false;
};

// The shortest cycle in which a changed program stands still, empty when it
// runs; nothing when what it does makes no sense any more.
using FindCycle =
    std::function<std::optional<std::vector<Wait>>(const CommProgram&)>;

// Tries, on the ranks of the cycle, to take an awaited action before the one
// that waits, that one behind the awaited, or each to the other's place; then
// the same with the cycle that is left, breadth first by the number of moves.
// Of as many moves, those that go no further than the cycle asks come first,
// then short ones. What is found in a large program, where not all can be
// tried, ends the deadlock and need not be the smallest.
Reordering FindReordering(const CommProgram& program,
                          const std::vector<Wait>& cycle,
                          const FindCycle& find_cycle);

}  // namespace weir

#endif  // WEIR_SCHEDULES_REORDER_H_
