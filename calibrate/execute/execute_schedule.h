// SPDX-License-Identifier: Apache-2.0
// Executes a schedule with real training.
#ifndef WEIR_CALIBRATE_EXECUTE_EXECUTE_SCHEDULE_H_
#define WEIR_CALIBRATE_EXECUTE_EXECUTE_SCHEDULE_H_

#include <functional>

#include "absl/status/statusor.h"
#include "calibrate/execute/board.h"
#include "calibrate/execute/execution_order.h"
#include "calibrate/execute/execution_plan.h"
#include "calibrate/execute/execution_record.h"
#include "calibrate/execute/rank_device.h"

namespace weir::calibrate {

struct ExecutionHooks {
  // Called after each step from the calling thread; may be empty.
  std::function<void(int step, const StepRecord& record)> step_done;
  std::function<bool()> stop;  // true: ExecuteSchedule returns Cancelled
};

// Trains num_steps steps. On a concurrent device every rank has a thread, and
// times are those of the device. On a serial device actions run one at a time,
// in an order that their dependencies allow, and each rank has a logical clock:
// an action begins when the previous one on its rank has ended and its inputs
// have arrived over plan.links, and lasts as long as it took uncontended.
//
// Weights are stashed and updated as execution requires, never from the
// semantics table; the record contains the versions that were read.
//
// Returns DeadlineExceeded, with every waiting rank, its action and what it
// waits for, if anything waits longer than the plan's timeout;
// FailedPrecondition if the schedule deadlocks; ResourceExhausted, with rank
// and action, if memory does not suffice.
absl::StatusOr<ExecutionRecord> ExecuteSchedule(
    const ExecutionPlan& plan, ExecutionDevice* device,
    const ExecutionHooks& hooks = {});

// Executes a given order, which announces messages on `board`. ExecuteSchedule
// makes both from the plan; tests pass those of a faulty runtime. Requires: the
// schedule is valid, and `board` belongs to `order`. Returns the errors of
// ExecuteSchedule.
absl::StatusOr<ExecutionRecord> ExecuteOrder(const ExecutionPlan& plan,
                                             const ExecutionOrder& order,
                                             Board* board,
                                             ExecutionDevice* device,
                                             const ExecutionHooks& hooks = {});

// Returns FailedPrecondition if versions that were read differ from the
// schedule's table (InterpretSchedule); it lists every difference with stage
// and microbatch.
absl::Status CheckVersions(const ExecutionPlan& plan,
                           const ExecutionRecord& record);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_EXECUTE_SCHEDULE_H_
