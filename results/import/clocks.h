// SPDX-License-Identifier: Apache-2.0
// Clocks of the workers of a recorded run.
#ifndef WEIR_RESULTS_IMPORT_CLOCKS_H_
#define WEIR_RESULTS_IMPORT_CLOCKS_H_

#include "absl/status/status.h"
#include "results/import/recorded_run.h"

namespace weir::results {

// How far the clocks of workers may differ without a repair, and the times of
// operations on one worker.
inline constexpr double kClockSeconds = 5e-4;

// By how much the times of a step may contradict each other: more would change
// its time by over 0.1 %, or is above kClockSeconds.
double AllowedSeconds(const RecordedStep& step);

// Finds out whether the clocks of the workers differ:
// - a message arrives before it is sent;
// - a pass starts before another rank has ended the microbatch in the stage
//   that it follows;
// - a gather or reduction over the replicas ends on one of them before another
//   has started it.
// If so by more than AllowedSeconds, moves all times of a worker by the same
// seconds, in all steps or, if the run says so or if that is impossible, in
// each step, and notes what was assumed (SolveClocks). Then aligns workers that
// none of these orders link (AlignUnlinked). Otherwise changes nothing.
// Returns InvalidArgument if the times contradict each other whatever the
// shifts, except of runs in which passes may start too early: these keep their
// times and have a note.
// Requires: operations are sorted.
absl::Status RepairClocks(RecordedRun* run);

}  // namespace weir::results

#endif  // WEIR_RESULTS_IMPORT_CLOCKS_H_
