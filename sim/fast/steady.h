// SPDX-License-Identifier: Apache-2.0
// Steady states of schedules. A schedule of many microbatches repeats itself
// between its warm-up and its drain. Where it provably does, a run with fewer
// of its periods determines the time of the whole run, regardless of the number
// of microbatches.
#ifndef WEIR_SIM_FAST_STEADY_H_
#define WEIR_SIM_FAST_STEADY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "schedules/schedule.h"
#include "sim/engine/engine.h"
#include "sim/graph/pipeline_graph.h"
#include "sim/report/memory.h"

namespace weir::sim {

// A part of a rank's order in which every action equals the one a period
// before, with its microbatch shifted forward (or, if `descending`, backward:
// GPipe's backwards) by a period's microbatches.
struct Stretch {
  int32_t first = 0, end = 0;  // positions; a whole number of periods
  int32_t period_actions = 0;
  bool descending = false;
};

// A schedule with whole periods cut out of every stretch of every rank.
struct ShortenedSchedule {
  schedules::Schedule schedule;
  int num_periods_left_out = 0;  // in every stretch, also below
  int num_periods_kept = 0;      // in the shortest stretch
  int period_microbatches = 0;
  // Microbatches are numbered lane by lane, and every lane is cut in the same
  // way. There is one lane, or one per route if each route takes its turn only
  // once (Chimera, DualPipe).
  int num_lanes = 1;
  // [rank], in order; equally many for each rank. A rank of 1F1B has one, of
  // GPipe two: forwards and backwards. Each class of passes (stage, op, lane,
  // and the microbatch's index in the lane modulo the lane's part of the
  // period) is in exactly one of its rank's stretches.
  std::vector<std::vector<Stretch>> stretches;
};

// Returns the number of actions of all ranks.
size_t NumActions(const schedules::Schedule& schedule);

// Returns true if every stage is updated once, after the whole batch. A
// shortened schedule then has the same number of weight versions: one.
bool UpdatesOnce(const schedules::Schedule& schedule);

struct ShortenOptions {
  // In every stretch; 0: as many as the times usually need to repeat. A larger
  // number is for times that did not repeat.
  int num_periods_kept = 0;
  // The number of periods left out is a multiple of it; see FindSteadiness.
  int multiple = 1;
};

// Returns std::nullopt if the order of a rank does not repeat or is too short
// to benefit, if there is no flush, or if a limit on resident activations makes
// actions wait for others by count. Takes a few nanoseconds per action.
// Requires: ValidateSchedule(schedule) is OK.
std::optional<ShortenedSchedule> ShortenSchedule(
    const schedules::Schedule& schedule, const ShortenOptions& options = {});

// Returns the schedule that was shortened.
schedules::Schedule RestoreSchedule(const ShortenedSchedule& shortened);

// The times at which the run of a shortened schedule repeats itself.
struct Steadiness {
  struct Cut {
    double at_seconds = 0;      // in the short run: insert periods here
    double period_seconds = 0;  // one period: the mean of period_multiple
    int period_multiple = 1;    // periods after which the times repeat
  };
  std::vector<Cut> cuts;  // one per stretch of a rank, ascending
  // Seconds that the periods left out add to the makespan, and to every time
  // after the last cut.
  double seconds_left_out = 0;
};

// Returns std::nullopt if the short run does not repeat equally for all tasks;
// it must then not be extrapolated. If it repeats only after a number of
// periods that does not divide those left out, sets *period_multiple (unless
// null) to that number; else to 0.
//
// Proof. Consider the run at a time T and at T - Delta. Suppose that 1. every
// GPU is inside its k-th stretch at both times: it has ended the
//    stretch's first period before T - Delta, and has not begun its last one;
// 2. shifted by one period (the map from an action to the one a period later,
//    and to their dependent tasks along the edges of the graph; checked to keep
//    kinds, amounts and GPUs), the tasks that are in flight at any time in [T0,
//    T - Delta] are exactly those in flight in [T0 + Delta, T], and their
//    starts and ends are Delta later. T0 is the earliest start of a task that
//    is in flight at T - Delta.
// Then the states at T - Delta and at T are the same up to the shift:
// - The same tasks are in flight. Timers have as much left. So do flows: their
//   rates depend only on the flows in flight, which have been the same since
//   they began. (Without T0 this would be wrong: a flow that shared its link
//   before the window has more left than its copy that did not.)
// - The same tasks have ended. If a task had ended but its copy had not, the
//   copy would be in flight or wait for a task in flight, which by 2 is a copy
//   of a task in flight at T - Delta, for which the first task would have
//   waited.
// - The same actions, with the same predecessors, are yet to come as long as no
//   rank leaves its stretch: inputs of stretch k come from actions of stretch
//   k, of the same class one period apart (ShortenSchedule checks it), or from
//   earlier stretches, which have ended.
// The future depends on the state alone. So in a run with n more periods in
// each k-th stretch, the state at T + n Delta is that of the short run at T,
// and everything after it happens n Delta later. What a rank waits for in its
// own order (weights gathered for a run of passes, at most one run ahead) is in
// the same period or the next, which is why 1 excludes the last period. The
// same argument applies to the next stretch: its cut adds its own Delta.
std::optional<Steadiness> FindSteadiness(const ShortenedSchedule& shortened,
                                         const PipelineGraph& graph,
                                         const Recording& recording,
                                         int* period_multiple = nullptr);

// Returns options to try when FindSteadiness found nothing: a number of
// left-out periods that `period_multiple` divides, or twice as many kept
// periods.
ShortenOptions NextTry(const ShortenedSchedule& shortened,
                       const ShortenOptions& options, int period_multiple);

// Returns the seconds by which the periods left out delay everything after
// them; nothing without a steady state.
std::optional<double> SecondsLeftOut(const ShortenedSchedule& shortened,
                                     const PipelineGraph& graph,
                                     const Recording& recording);

// Returns the peak of the whole run, from the samples of the short one: memory
// that each period leaves allocated (activations of GPipe's forwards) adds up.
double PeakBytesOfAll(const MemoryTimeline& timeline,
                      const ShortenedSchedule& shortened,
                      const Steadiness& steadiness);

}  // namespace weir::sim

#endif  // WEIR_SIM_FAST_STEADY_H_
