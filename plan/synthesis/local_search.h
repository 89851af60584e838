// SPDX-License-Identifier: Apache-2.0
// Local search for an order by small changes.
#ifndef WEIR_PLAN_SYNTHESIS_LOCAL_SEARCH_H_
#define WEIR_PLAN_SYNTHESIS_LOCAL_SEARCH_H_

#include <cstdint>
#include <functional>

#include "plan/synthesis/pass_rows.h"

namespace weir::plan {

struct LocalSearchOptions {
  int64_t num_moves = 100'000;  // tried
  uint64_t seed = 1;
  double enough = 0;  // an order this short is optimal and ends the search
  // Called every kMovesPerLook moves by the searching thread; true ends the
  // search.
  std::function<bool()> stop = {};

  bool Stops(int64_t move) const {
    return move % kMovesPerLook == 0 && stop && stop();
  }
  static constexpr int64_t kMovesPerLook = 64;
};

struct LocalSearchResult {
  PassRows rows;
  double value = 0;  // the objective, as by TimedWalk
  int64_t num_moves = 0, num_accepted = 0;
};

// Improves an order by random moves: a pass of a rank moves to another place
// among the passes that it may overtake (a swap of neighbors, an F or W further
// ahead, ...); an I and its W are fused into a whole backward or split where
// that can be faster. Orders that exceed the limit or deadlock are rejected. A
// worse order is accepted if it is worse by less than a threshold that falls to
// zero (threshold accepting, Dueck and Scheuer, 1990). Only passes that start
// after the moved ones are timed again. The result is never worse than the
// start, and depends only on the input and the seed: no clock or library random
// numbers are used.
// Requires: `start` is executable and within the limit.
LocalSearchResult SearchLocally(const PassTable& table, const PassRows& start,
                                const LocalSearchOptions& options);

}  // namespace weir::plan

#endif  // WEIR_PLAN_SYNTHESIS_LOCAL_SEARCH_H_
