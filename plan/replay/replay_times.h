// SPDX-License-Identifier: Apache-2.0
// Times of a rank computed from the recorded actions of a step.
#ifndef WEIR_PLAN_REPLAY_REPLAY_TIMES_H_
#define WEIR_PLAN_REPLAY_REPLAY_TIMES_H_

#include "calibrate/execute/execution_record.h"
#include "schedules/schedule.h"

namespace weir::plan {

// An interval of a step.
struct ReplayWindow {
  double begin_seconds = 0, end_seconds = 0;
  int num_batches = 1;

  double seconds() const { return end_seconds - begin_seconds; }
};

// Returns the whole step for a schedule with flush. Without flush, returns the
// interval from the end of a batch in the middle to the end of the last batch
// before the pipeline drains, if there are enough batches.
ReplayWindow WindowOf(const schedules::Schedule& schedule,
                      const calibrate::StepRecord& step);

struct RecordedTimes {
  double busy_seconds = 0;  // passes and updates; overlapping ones count once
  double idle_seconds = 0;  // the rest of the window
  // Idle time while a message required by the next action was in flight.
  double exposed_seconds = 0;
};
RecordedTimes TimesOf(const schedules::Schedule& schedule,
                      const calibrate::StepRecord& step, int rank,
                      const ReplayWindow& window);

// Time from the start of the first pass to the end of the last, and the part of
// it outside passes.
struct ReplaySpan {
  double seconds = 0, idle_seconds = 0;
};
ReplaySpan SpanOf(const schedules::Schedule& schedule,
                  const calibrate::StepRecord& step, int rank);

// Same definition as in RankResult.
double PeakActivationMicrobatches(const schedules::Schedule& schedule,
                                  const calibrate::StepRecord& step, int rank);

// Computed from the versions that were read: the maximum number of versions of
// a stage that the rank had to hold at a time (the newest, and older ones still
// to be read), and the maximum number of updates between the weights of a
// gradient and those to which it was applied.
struct VersionsHeld {
  int versions = 1, staleness = 0;
};
VersionsHeld VersionsOf(const schedules::Schedule& schedule,
                        const calibrate::StepRecord& step, int rank);

}  // namespace weir::plan

#endif  // WEIR_PLAN_REPLAY_REPLAY_TIMES_H_
