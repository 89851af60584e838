// SPDX-License-Identifier: Apache-2.0
// Better orders from a given one, by small changes.
#ifndef WEIR_PLAN_SYNTHESIS_LOCAL_SEARCH_H_
#define WEIR_PLAN_SYNTHESIS_LOCAL_SEARCH_H_

#include <cstdint>
#include <functional>

#include "plan/synthesis/pass_rows.h"

namespace weir {

struct LocalSearchOptions {
  int64_t num_moves = 100'000;  // tried
  uint64_t seed = 1;
  double enough = 0;  // an order so short is a best one: end there
  // Called every kMovesPerLook moves, from the searching thread; true ends it.
  std::function<bool()> stop = {};

  bool Stops(int64_t move) const {
    return move % kMovesPerLook == 0 && stop && stop();
  }
  static constexpr int64_t kMovesPerLook = 64;
};

struct LocalSearchResult {
  PassRows rows;
  double value = 0;  // the objective, as TimedWalk finds it
  int64_t num_moves = 0, num_accepted = 0;
};

// Moves one pass of a rank to another place among the passes that it may
// overtake (a swap of neighbours, an F or W further ahead, ...), joins an I and
// its W into a whole backward or parts them where that can pay. An order that
// breaks the limit or deadlocks is refused; a worse one is taken while it is
// worse by less than a threshold that sinks to nothing (threshold accepting,
// Dueck and Scheuer, 1990). Only what starts after the moved passes is timed
// again. Never worse than the start. Same input and seed, same result, on any
// machine: no clock, no library's random numbers.
// REQUIRES: `start` is executable and within the limit.
LocalSearchResult SearchLocally(const PassTable& table, const PassRows& start,
                                const LocalSearchOptions& options);

}  // namespace weir

#endif  // WEIR_PLAN_SYNTHESIS_LOCAL_SEARCH_H_
