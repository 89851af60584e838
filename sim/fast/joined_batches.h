// SPDX-License-Identifier: Apache-2.0
// Runs without flush whose times do not depend on where batches end, because
// optimizer steps take no time. Their batches are one batch with the same
// order, which ShortenSchedule can shorten; the window of Simulate follows from
// the times of the short run.
#ifndef WEIR_SIM_FAST_JOINED_BATCHES_H_
#define WEIR_SIM_FAST_JOINED_BATCHES_H_

#include "schedules/schedule.h"
#include "sim/costs/stage_costs.h"
#include "sim/engine/engine.h"
#include "sim/fast/steady.h"
#include "sim/graph/pipeline_graph.h"
#include "sim/report/window.h"

namespace weir::sim {

// Returns true if the batches of a schedule may be joined or shortened
// (short_batches.h): it has no flush, one route, and no limit on resident
// activations.
bool MayJoinBatches(const schedules::Schedule& schedule);

// Returns how many of `total` microbatches need not be generated, if the
// schedule repeats them (ScheduleKind::repeats_microbatches): a multiple of the
// ranks, after which times usually repeat.
int MicrobatchesNotGenerated(int total, int num_ranks);

// Makes one batch of all batches, with one update after it. The order and the
// predictions of weights stay.
void JoinBatches(schedules::Schedule* schedule);

// Returns true if the times and the memory of a run are those of its joined
// batches: the graph has passes and transfers only, all of them timers, so that
// every time is determined by the passes before it, nothing is computed once
// per update, and memory holds no older versions of weights.
bool AreOnlyPasses(const schedules::Schedule& joined,
                   const PipelineGraph& graph, const Costs& costs);

// Returns the number of tasks that the graph of `num_microbatches` would have.
// Requires: AreOnlyPasses.
double TasksOfJoined(const PipelineGraph& graph,
                     const schedules::Schedule& shortened,
                     int num_microbatches);

// Returns the window that FindWindow finds in the whole run of a schedule whose
// joined batches were shortened. `shape`: that schedule; its actions are not
// read. An action before the end of the shortened stretch has the time of the
// short run, since the same passes precede it; one in the periods left out is a
// multiple of the period later than one before; and one after them is later by
// seconds_left_out. Requires: AreOnlyPasses, and one ascending stretch
// per rank.
Window WindowOfJoined(const schedules::Schedule& shape,
                      const ShortenedSchedule& shortened,
                      const Steadiness& steadiness, const PipelineGraph& graph,
                      const Recording& recording, double makespan_seconds);

}  // namespace weir::sim

#endif  // WEIR_SIM_FAST_JOINED_BATCHES_H_
