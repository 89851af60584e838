// SPDX-License-Identifier: Apache-2.0
// What the full simulation and the ranking of a scenario have in common: which
// schedule is run over which network, and for how many batches.
#ifndef WEIR_SIM_PREPARE_H_
#define WEIR_SIM_PREPARE_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "scenarios/network.h"
#include "scenarios/scenario.h"
#include "schedules/schedule.h"
#include "schedules/semantics.h"
#include "sim/engine.h"
#include "sim/pipeline_graph.h"
#include "sim/window.h"

namespace weir {

Network NetworkOf(const ResolvedScenario& scenario);

// Errors as the generator's or the file's.
absl::StatusOr<Schedule> ScheduleOf(const ResolvedScenario& scenario,
                                    const Network& network, int num_batches);

// Does ScheduleOf depend on nothing but its name and shape?
bool IsGeneratedFromShape(const ResolvedScenario& scenario);

// [stage]: most weight versions.
std::vector<int> VersionsOfStages(const Semantics& semantics);

// How many batches to begin with; 0: until the steady state shows.
absl::StatusOr<int> GivenBatches(const ResolvedScenario& scenario);
int FirstBatches(const ResolvedScenario& scenario);

// Names the actions that wait for each other. REQUIRES: it is not complete.
absl::Status Deadlock(const Schedule& schedule, const PipelineGraph& graph,
                      const Recording& recording, bool blocking);

double MakespanOf(const Recording& recording);

// Whether a run without flush is long enough.
bool ShowsEnough(const Window& window, int num_batches, double num_tasks);

// Without flush: as many batches as it takes to see the steady state.
// `run_batches` takes their number and returns an absl::StatusOr of a run,
// which has a window and num_tasks(), of everybody.
template <typename RunBatches>
auto RunToSteadyState(const ResolvedScenario& scenario, RunBatches run_batches)
    -> decltype(run_batches(1)) {
  ASSIGN_OR_RETURN(const int given, GivenBatches(scenario));
  if (given > 0) return run_batches(given);
  for (int num_batches = FirstBatches(scenario);; num_batches *= 2) {
    auto run = run_batches(num_batches);
    if (!run.ok() || ShowsEnough(run->window, num_batches, run->num_tasks())) {
      return run;
    }
  }
}

}  // namespace weir

#endif  // WEIR_SIM_PREPARE_H_
