// SPDX-License-Identifier: Apache-2.0
// Runs without flush whose batches are all shortened by the same number of
// microbatches, for schedules that repeat them
// (ScheduleKind::repeats_microbatches). Unlike joined batches
// (joined_batches.h), batches may end with optimizer steps and gradient
// reductions that take time.
#ifndef WEIR_SIM_FAST_SHORT_BATCHES_H_
#define WEIR_SIM_FAST_SHORT_BATCHES_H_

#include <optional>

#include "schedules/schedule.h"
#include "schedules/semantics.h"
#include "sim/fast/steady.h"
#include "sim/report/window.h"

namespace weir::sim {

// Returns the largest number of forwards with which a rank begins.
int MostWarmupForwards(const schedules::Schedule& schedule);

// Returns how many of `num_batches` the first try leaves out at the end of the
// run. A run that is steady before its last batches stays so: further batches
// repeat the times and the memory of earlier ones.
int BatchesLeftOut(const schedules::Schedule& schedule, int num_batches);

// Returns how many of `num_microbatches` per batch to keep in a try, of which
// the first has number 0. Returns 0 if a short run would save little.
// `num_in_flight`: see MostWarmupForwards.
int MicrobatchesKept(int num_microbatches, int num_in_flight, int num_try);

// Makes `schedule` the result of leaving out `num_microbatches_left_out` from
// every batch of the same schedule with longer batches. Returns std::nullopt if
// a rank does not repeat forward and backward of one microbatch within every
// batch, with equally many versions of its weights after the first batch.
//
// There is one stretch per batch, in which a rank has passes of this batch
// only: it begins after the last backward of the batch before (and, if weights
// are predicted once per update, after the first forward of this batch), and
// ends before the first forward of the next one. The proof in steady.h then
// holds, since inputs of a pass are passes of its own batch, and periods
// inserted in the stretches of a batch make all of its ranks begin the next one
// later by as many microbatches, which is the order of the schedule with longer
// batches.
//
// The peak of memory is that of the short run: a period left out holds the
// activations of a period that is kept, and at most as many versions of weights
// as those of later batches. In the first batch, the number of versions may
// still grow.
//
// The whole run has the same number of batches, apart from BatchesLeftOut: it
// follows from the number of microbatches of the whole run, and a stretch of
// three periods implies that fewer microbatches are in flight than the short
// batches have.
//
// Predictions of weights belong to their passes. One per update is that of the
// first forward of a batch, which precedes the periods inserted; whether a rank
// predicts at all does not depend on the number of microbatches of batches that
// are as long as required here.
//
// Requires: MayJoinBatches(schedule) (joined_batches.h). Batches of `schedule`
// have at least as many microbatches as the pipeline has ranks.
std::optional<ShortenedSchedule> ShortenBatches(
    const schedules::Schedule& schedule, const schedules::Semantics& semantics,
    int num_microbatches_left_out);

// Returns the window of the whole run: that of the short run with the seconds
// of the periods left out before its begin and its end. Requires: the window is
// steady.
Window WindowOfShortBatches(const Window& window, const Steadiness& steadiness,
                            int num_periods_left_out);

}  // namespace weir::sim

#endif  // WEIR_SIM_FAST_SHORT_BATCHES_H_
