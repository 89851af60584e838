// SPDX-License-Identifier: Apache-2.0
// What the actions of a recorded step say of its ranks.
#ifndef WEIR_CALIBRATE_PROGRAM_REPLAY_TIMES_H_
#define WEIR_CALIBRATE_PROGRAM_REPLAY_TIMES_H_

#include "calibrate/replay/replay_record.h"
#include "schedules/schedule.h"

namespace weir {

// A part of a step.
struct ReplayWindow {
  double begin_seconds = 0, end_seconds = 0;
  int num_batches = 1;

  double seconds() const { return end_seconds - begin_seconds; }
};

// With flush all of it. Without, from the end of a batch in the middle to that
// of the last one before the pipeline drains, where there are so many.
ReplayWindow WindowOf(const Schedule& schedule, const StepRecord& step);

struct RecordedTimes {
  double busy_seconds = 0;  // passes and updates; two at a time count once
  double idle_seconds = 0;  // the rest of the window
  // Idle while a message that the next action needs was under way.
  double exposed_seconds = 0;
};
RecordedTimes TimesOf(const Schedule& schedule, const StepRecord& step,
                      int rank, const ReplayWindow& window);

// From the start of the first action to the end of the last, and how much of it
// was not passes.
struct ReplaySpan {
  double seconds = 0, idle_seconds = 0;
};
ReplaySpan SpanOf(const Schedule& schedule, const StepRecord& step, int rank);

// As RankResult has it.
double PeakActivationMicrobatches(const Schedule& schedule,
                                  const StepRecord& step, int rank);

// By what was read: most versions that the rank had to hold of a stage at a
// time (the newest, and older ones still to be read), and most updates between
// the weights of a gradient and those that it was applied to.
struct VersionsHeld {
  int versions = 1, staleness = 0;
};
VersionsHeld VersionsOf(const Schedule& schedule, const StepRecord& step,
                        int rank);

}  // namespace weir

#endif  // WEIR_CALIBRATE_PROGRAM_REPLAY_TIMES_H_
