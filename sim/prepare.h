// SPDX-License-Identifier: Apache-2.0
// Preparation that the full simulation and the ranking of a scenario share: the
// schedule, the network and the number of batches.
#ifndef WEIR_SIM_PREPARE_H_
#define WEIR_SIM_PREPARE_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "scenarios/cluster/network.h"
#include "scenarios/scenario.h"
#include "schedules/schedule.h"
#include "schedules/semantics.h"
#include "sim/engine/engine.h"
#include "sim/graph/pipeline_graph.h"
#include "sim/report/window.h"

namespace weir::sim {

scenarios::Network NetworkOf(const scenarios::ResolvedScenario& scenario);

// Returns the scenario's schedule, or the error of its generator or file. If
// the scenario post-validates steps, a schedule with a flush is repeated
// `num_batches` times.
absl::StatusOr<schedules::Schedule> ScheduleOf(
    const scenarios::ResolvedScenario& scenario,
    const scenarios::Network& network, int num_batches);

// Returns true if the scenario's schedule is run without a barrier at its
// optimizer steps: with a flush, on several ranks, and either as the scenario
// says or with split backwards on a runtime that validates steps later. Returns
// the errors of schedules::ScheduleFlushes.
absl::StatusOr<bool> PostValidates(const scenarios::ResolvedScenario& scenario);

// Returns the same without repetitions: one batch of a schedule with a flush.
// Errors are those of ScheduleOf.
absl::StatusOr<schedules::Schedule> PlannedScheduleOf(
    const scenarios::ResolvedScenario& scenario,
    const scenarios::Network& network, int num_batches);

// Returns true if ScheduleOf depends only on the schedule's name and shape.
bool IsGeneratedFromShape(const scenarios::ResolvedScenario& scenario);

// Returns the largest number of weight versions of each stage.
std::vector<int> VersionsOfStages(const schedules::Semantics& semantics);

// Returns the number of batches that is given or follows from the schedule; 0:
// as many as show the steady state, starting with FirstBatches. Both return the
// errors of schedules::ScheduleFlushes.
absl::StatusOr<int> GivenBatches(const scenarios::ResolvedScenario& scenario);
absl::StatusOr<int> FirstBatches(const scenarios::ResolvedScenario& scenario);

// Returns FailedPrecondition with the actions that wait for each other.
// Requires: `recording` is not complete.
absl::Status Deadlock(const schedules::Schedule& schedule,
                      const PipelineGraph& graph, const Recording& recording,
                      bool blocking);

double MakespanOf(const Recording& recording);

// Returns true if a run without flush is long enough.
bool ShowsEnough(const Window& window, int num_batches, double num_tasks);

// Runs as many batches as it takes to see the steady state of a schedule
// without flush, or of batches with a flush that overlap. `run_batches` takes
// their number and returns an absl::StatusOr of a run that has a window and
// num_tasks(), the number of tasks of all GPUs.
template <typename RunBatches>
auto RunToSteadyState(const scenarios::ResolvedScenario& scenario,
                      RunBatches run_batches) -> decltype(run_batches(1)) {
  ASSIGN_OR_RETURN(const int given, GivenBatches(scenario));
  if (given > 0) return run_batches(given);
  ASSIGN_OR_RETURN(int num_batches, FirstBatches(scenario));
  for (;; num_batches *= 2) {
    auto run = run_batches(num_batches);
    if (!run.ok() || ShowsEnough(run->window, num_batches, run->num_tasks())) {
      return run;
    }
  }
}

}  // namespace weir::sim

#endif  // WEIR_SIM_PREPARE_H_
