// SPDX-License-Identifier: Apache-2.0
// Local search for an order with offloads.
#ifndef WEIR_PLAN_SYNTHESIS_OFFLOAD_MOVES_H_
#define WEIR_PLAN_SYNTHESIS_OFFLOAD_MOVES_H_

#include <cstdint>

#include "plan/synthesis/local_search.h"
#include "plan/synthesis/offload_clock.h"

namespace weir::plan {

struct OffloadSearchResult {
  OffloadRows rows;
  double value = 0;  // the objective, as by TimedWalk
  int64_t num_moves = 0;
};

// Like SearchLocally, with additional moves: offloads an activation and reloads
// it somewhere before its gradient; reloads it earlier or later; keeps it on
// the rank after all; changes the number of activations on a rank above which
// forwards and reloads wait for offloads. Memory is computed exactly, by time.
// Whole backwards are not split.
// Requires: one chunk; `start` is executable and within the limit.
OffloadSearchResult SearchOffloads(const PassTable& table,
                                   const OffloadRows& start,
                                   const LocalSearchOptions& options);

}  // namespace weir::plan

#endif  // WEIR_PLAN_SYNTHESIS_OFFLOAD_MOVES_H_
