// SPDX-License-Identifier: Apache-2.0
// Better orders from a given one, where activations may go to the host.
#ifndef WEIR_PLAN_SYNTHESIS_OFFLOAD_MOVES_H_
#define WEIR_PLAN_SYNTHESIS_OFFLOAD_MOVES_H_

#include <cstdint>

#include "plan/synthesis/local_search.h"
#include "plan/synthesis/offload_clock.h"

namespace weir {

struct OffloadSearchResult {
  OffloadRows rows;
  double value = 0;  // the objective, as TimedWalk finds it
  int64_t num_moves = 0;
};

// As SearchLocally, and: sends an activation of a rank to the host and fetches
// it back, somewhere before its gradient; fetches it sooner or later; lets it
// stay after all; changes how many activations may be on a rank before forwards
// and reloads wait for offloads. What ranks hold is counted by time, exactly.
// Whole backwards stay whole.
// REQUIRES: one chunk; `start` is executable and within the limit.
OffloadSearchResult SearchOffloads(const PassTable& table,
                                   const OffloadRows& start,
                                   const LocalSearchOptions& options);

}  // namespace weir

#endif  // WEIR_PLAN_SYNTHESIS_OFFLOAD_MOVES_H_
