// SPDX-License-Identifier: Apache-2.0
// The full simulation: scenario -> stage costs, schedule, platform -> task
// graph -> engine -> result.
#ifndef WEIR_SIM_SIMULATE_H_
#define WEIR_SIM_SIMULATE_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "results/result.pb.h"
#include "scenarios/scenario.h"
#include "schedules/schedule.h"
#include "sim/report/replay_tasks.h"
#include "sim/report/slack.h"

namespace weir::sim {

class GraphRunner;

struct SimulateOptions {
  // Fills Result::timeline, which takes about 100 bytes of memory per action.
  bool keep_timeline = false;
  // Keeps only this many last batches and the drain of a run without flush that
  // was made more than twice as long to find its steady state; 0: all.
  int timeline_batches = 0;
  // Called now and then from this thread with the completed fraction, 0 to 1.
  std::function<void(double)> progress;
  // Runs the task graph in this process instead of in a forked child, for
  // processes that simulate very many small scenarios. Must outlive the call.
  GraphRunner* runner = nullptr;
};

// Simulates one scenario. Returns InvalidArgument for errors that the user can
// fix, NotFound for an unknown schedule, FailedPrecondition for a schedule that
// deadlocks, ResourceExhausted if this machine has too little memory, Cancelled
// when interrupted, and Internal for bugs in weir. A schedule that does not fit
// in the GPUs' memory is a result (fits_memory is false).
absl::StatusOr<Result> Simulate(const scenarios::ResolvedScenario& scenario,
                                const SimulateOptions& options = {});

// Simulates as Simulate does, and returns what delays the run absorbs. Of a run
// without flush, all batches count. Returns Simulate's errors.
absl::StatusOr<ScheduleSlack> SlackOfScenario(
    const scenarios::ResolvedScenario& scenario,
    const SimulateOptions& options = {});

// The same, and returns the run as arrays.
absl::StatusOr<ReplayTasks> ReplayTasksOfScenario(
    const scenarios::ResolvedScenario& scenario,
    const SimulateOptions& options = {});

// Returns Simulate's errors, deadlocks included, without simulating: builds the
// task graph and follows its edges. Without flush it checks the first length
// that Simulate would try. Returns the schedule that it checked.
absl::StatusOr<schedules::Schedule> CheckSimulation(
    const scenarios::ResolvedScenario& scenario);

// Returns the schedule that Simulate would run; for a schedule without flush,
// with `num_batches` batches, and with a flush, one batch. Returns Simulate's
// errors.
absl::StatusOr<schedules::Schedule> ScheduleOfScenario(
    const scenarios::ResolvedScenario& scenario, int num_batches);

// Returns the warning that a run may not fit whose fullest GPU uses this
// fraction of its memory.
std::string MarginWarning(double part);

// Uncontended time of one message between two ranks of the pipeline.
struct UncontendedTransfer {
  double latency_seconds = 0;
  double link_seconds = 0;  // 0: no link limits it
};
UncontendedTransfer TransferAlone(const scenarios::ResolvedScenario& scenario,
                                  int from_rank, int to_rank, double bytes);

// Simulates a given schedule, with as many batches as it has; ignores
// scenario.schedule. Also returns the errors of ValidateSchedule.
absl::StatusOr<Result> SimulateSchedule(
    const scenarios::ResolvedScenario& scenario,
    const schedules::Schedule& schedule, const SimulateOptions& options = {});

}  // namespace weir::sim

#endif  // WEIR_SIM_SIMULATE_H_
