// SPDX-License-Identifier: Apache-2.0
// A schedule of many microbatches repeats itself between its warm-up and its
// drain. Where it provably does, a run with fewer of its periods tells what the
// whole run takes, whatever the number of microbatches.
#ifndef WEIR_SIM_STEADY_H_
#define WEIR_SIM_STEADY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "schedules/schedule.h"
#include "sim/engine.h"
#include "sim/memory.h"
#include "sim/pipeline_graph.h"

namespace weir {

// A part of a rank's order in which every action equals the one a period
// before, its microbatch moved on (or, `descending`, back: GPipe's backwards)
// by a period's microbatches.
struct Stretch {
  int32_t first = 0, end = 0;  // positions; end - first is whole periods
  int32_t period_actions = 0;
  bool descending = false;
};

// A schedule with whole periods cut out of every stretch of every rank.
struct ShortenedSchedule {
  Schedule schedule;
  int num_periods_left_out = 0;  // of every stretch, here and below
  int num_periods_kept = 0;      // in the shortest stretch
  int period_microbatches = 0;
  // Microbatches are numbered lane by lane, and every lane is cut alike: one
  // lane, or as many as routes where each route takes its turn only once
  // (Chimera, DualPipe).
  int num_lanes = 1;
  // [rank], in order; as many of each rank. A rank of 1F1B has one, of GPipe
  // two: forwards and backwards. Each class of passes (stage, op, lane, and the
  // microbatch's index in the lane modulo the lane's part of the period) is in
  // exactly one of its rank's stretches.
  std::vector<std::vector<Stretch>> stretches;
};

// Returns the actions of all ranks.
size_t NumActions(const Schedule& schedule);

// Returns whether every stage is updated once, behind the whole batch. Then a
// shortened schedule has as many versions of it: one.
bool UpdatesOnce(const Schedule& schedule);

struct ShortenOptions {
  // In every stretch; 0: as many as it usually takes to see the times repeat.
  // More, where they did not.
  int num_periods_kept = 0;
  // Of the number of periods left out; see FindSteadiness.
  int multiple = 1;
};

// Nothing where the order of a rank does not repeat, or is too short for it to
// pay; without a flush; or where a limit of resident activations makes actions
// wait for others by count. Takes a few nanoseconds per action.
// REQUIRES: ValidateSchedule(schedule) is OK.
std::optional<ShortenedSchedule> ShortenSchedule(
    const Schedule& schedule, const ShortenOptions& options = {});

// The schedule that was shortened.
Schedule RestoreSchedule(const ShortenedSchedule& shortened);

// Where the run of a shortened schedule repeats itself.
struct Steadiness {
  struct Cut {
    double at_seconds = 0;      // of the short run: periods may be put in here
    double period_seconds = 0;  // of one period, the mean of period_multiple
    int period_multiple = 1;    // the times repeat after so many
  };
  std::vector<Cut> cuts;  // one per stretch of a rank, ascending
  // What the periods left out add to the makespan, and to every time behind the
  // last cut.
  double seconds_left_out = 0;
};

// Nothing where the short run does not repeat, all tasks alike: it may then not
// be extrapolated. Where it repeats, but only after a number of periods that
// does not divide those left out, sets *period_multiple (unless null) to it;
// else to 0.
//
// Proof. Let the run be at a moment T, and Delta before it. Suppose that
//  1. every GPU is inside its k-th stretch at both moments: it has ended the
//     stretch's first period before T - Delta, and has not begun its last one;
//  2. shifted by one period (the map that takes an action to the one a period
//     later, and what belongs to it along the edges of the graph; checked to
//     keep kinds, amounts and GPUs), all tasks that were under way at any time
//     in [T0, T - Delta] are exactly those under way in [T0 + Delta, T], and
//     their starts and ends are Delta later. T0 is when the first of those
//     began that are under way at T - Delta.
// Then the states at T - Delta and at T are the same up to the shift:
//  - the same tasks are under way. Timers have as much left. So have flows:
//    their rates depend on nothing but the flows under way, which have been the
//    same all the time since they began. (Without T0 this would be wrong: a
//    flow that shared its link before the window has more left than its copy
//    that did not.)
//  - the same tasks have ended: one that has, while its copy has not, would
//    have a copy that is under way or waits for one that is, which by 2 is a
//    copy of one under way at T - Delta, for which it would have waited.
//  - the same actions, which wait for the same, are yet to come as long as no
//    rank leaves its stretch: inputs of stretch k come from actions of stretch
//    k, of the same class one period apart (ShortenSchedule checks it), or from
//    earlier stretches, which have ended.
// The future depends on the state alone. So in the run with n more periods in
// each k-th stretch the state at T + n Delta is that of the short run at T, and
// what follows does so n Delta later. What a rank waits for in its own order
// (weights gathered for a run of passes, at most one run ahead) is in the same
// period or the next, hence the last one of 1. The same again for the next
// stretch: its cut adds its own Delta.
std::optional<Steadiness> FindSteadiness(const ShortenedSchedule& shortened,
                                         const PipelineGraph& graph,
                                         const Recording& recording,
                                         int* period_multiple = nullptr);

// What to try where FindSteadiness found nothing: a number of periods that
// `period_multiple` divides, or twice as many kept.
ShortenOptions NextTry(const ShortenedSchedule& shortened,
                       const ShortenOptions& options, int period_multiple);

// What the periods that were left out add to every time behind them.
std::optional<double> SecondsLeftOut(const ShortenedSchedule& shortened,
                                     const PipelineGraph& graph,
                                     const Recording& recording);

// The peak of the whole run, from the samples of the short one: what a period
// leaves behind (activations of GPipe's forwards) adds up.
double PeakBytesOfAll(const MemoryTimeline& timeline,
                      const ShortenedSchedule& shortened,
                      const Steadiness& steadiness);

}  // namespace weir

#endif  // WEIR_SIM_STEADY_H_
