// SPDX-License-Identifier: Apache-2.0
// Clocks of workers whose events nothing orders.
#ifndef WEIR_RESULTS_IMPORT_UNLINKED_CLOCKS_H_
#define WEIR_RESULTS_IMPORT_UNLINKED_CLOCKS_H_

#include <string>
#include <vector>

#include "results/import/clock_moves.h"
#include "results/import/recorded_run.h"

namespace weir::results {

// Workers of one step wait for each other at its end, whether or not a trace
// records it: those of all sets work on a step at about the same time. So the
// clocks of a set differ from those of the largest set if in more than half of
// the steps, the time ranges of both overlap by less than half of the shorter
// one. They are then aligned by the starts of steps: by the median difference
// of all steps, or, if clocks count from the start of each step or the ranges
// are still apart in more than half of the steps, in each step that is apart.
// A difference that leaves more overlap could be real and is kept.
//
// Adds the moves, and returns in words which sets moved and why, or "". Does
// not change the run. Requires: the clocks of each set agree.
std::string AlignUnlinked(const RecordedRun& run,
                          const std::vector<RecordedStep>& steps,
                          const std::vector<std::vector<int>>& sets,
                          ClockMoves* moves);

}  // namespace weir::results

#endif  // WEIR_RESULTS_IMPORT_UNLINKED_CLOCKS_H_
