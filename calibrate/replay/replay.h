// SPDX-License-Identifier: Apache-2.0
// Executes a schedule with real training.
#ifndef WEIR_CALIBRATE_REPLAY_REPLAY_H_
#define WEIR_CALIBRATE_REPLAY_REPLAY_H_

#include <functional>

#include "absl/status/statusor.h"
#include "calibrate/replay/rank_device.h"
#include "calibrate/replay/replay_plan.h"
#include "calibrate/replay/replay_record.h"

namespace weir {

struct ReplayHooks {
  // After each step, from the calling thread; may be empty.
  std::function<void(int step, const StepRecord& record)> step_done;
  std::function<bool()> stop;  // Cancelled when it says so
};

// Trains num_steps steps. On a concurrent device every rank has a thread, and
// times are those of the device. On another, actions run one at a time in an
// order that their dependencies allow, and each rank has a logical clock: an
// action begins when the one before it on its rank has ended and its inputs
// have arrived by plan.links, and lasts as long as it lasted alone.
//
// Weights are stashed and updated by what happens, never by the semantics
// table: the record says which versions were read.
//
// DeadlineExceeded when anything waits longer than the plan's timeout: every
// rank that waits, its action, and for what. FailedPrecondition for a schedule
// that deadlocks. ResourceExhausted names rank and action.
absl::StatusOr<ReplayRecord> RunReplay(const ReplayPlan& plan,
                                       ReplayDevice* device,
                                       const ReplayHooks& hooks = {});

// Everything in which versions that were read differ from the schedule's
// table (InterpretSchedule): FailedPrecondition names stage and microbatch.
absl::Status CheckVersions(const ReplayPlan& plan, const ReplayRecord& record);

}  // namespace weir

#endif  // WEIR_CALIBRATE_REPLAY_REPLAY_H_
