// SPDX-License-Identifier: Apache-2.0
// The one function that reads like the picture in the design: scenario ->
// stage costs, schedule, platform -> task graph -> engine -> result.
#ifndef WEIR_SIM_SIMULATE_H_
#define WEIR_SIM_SIMULATE_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "results/result.pb.h"
#include "scenarios/scenario.h"
#include "schedules/schedule.h"

namespace weir {

class GraphRunner;

struct SimulateOptions {
  // Fill Result::timeline (costs memory: about 100 bytes per action).
  bool keep_timeline = false;
  // Of a run without flush that was made longer than twice this to find its
  // steady state, keep these last batches and the drain only; 0: all of it.
  int timeline_batches = 0;
  // Called now and then from this thread with the part done, 0 to 1.
  std::function<void(double)> progress;
  // Runs the task graph here instead of in a forked child: for processes that
  // simulate very many small scenarios. Must outlive the call.
  GraphRunner* runner = nullptr;
};

// Simulates one scenario. InvalidArgument for what the user can mend,
// FailedPrecondition for a schedule that deadlocks, Internal for our bugs.
// A schedule that does not fit in memory is a result (fits_memory is false).
absl::StatusOr<Result> Simulate(const ResolvedScenario& scenario,
                                const SimulateOptions& options = {});

// Returns Simulate's errors, deadlocks included, without simulating: builds the
// task graph and follows its edges. Without flush it checks the first length
// that Simulate would try. If all is well, returns the schedule it checked.
absl::StatusOr<Schedule> CheckSimulation(const ResolvedScenario& scenario);

// Of all that the engine would run (of a run without flush: of its first
// length): equal ones take equal times. Comparable within one process and its
// children. Errors as Simulate's, deadlocks aside.
absl::StatusOr<uint64_t> FingerprintOf(const ResolvedScenario& scenario);

// The schedule that Simulate would run, of a schedule without flush with so
// many batches. Errors as Simulate's.
absl::StatusOr<Schedule> ScheduleOfScenario(const ResolvedScenario& scenario,
                                            int num_batches);

// Part of a GPU's memory that a run should leave free: the model of memory
// counts the context, libraries and communication buffers, but neither
// fragmentation of the caching allocator nor the workspaces of kernels.
inline constexpr double kUsualMemoryMargin = 0.05;
// What to say where the fullest GPU uses so large a part of its memory.
std::string MarginWarning(double part);

// What one message between two ranks of the pipeline takes alone.
struct LoneTransfer {
  double latency_seconds = 0;
  double link_seconds = 0;  // 0: nothing on the way limits it
};
LoneTransfer TransferAlone(const ResolvedScenario& scenario, int from_rank,
                           int to_rank, double bytes);

// Simulate for a schedule that is there already, as many batches as it has:
// scenario.schedule is not asked. FailedPrecondition, too, for one that is
// invalid.
absl::StatusOr<Result> SimulateSchedule(const ResolvedScenario& scenario,
                                        const Schedule& schedule,
                                        const SimulateOptions& options = {});

}  // namespace weir

#endif  // WEIR_SIM_SIMULATE_H_
