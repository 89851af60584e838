// SPDX-License-Identifier: Apache-2.0
// Conversion of a simulated run to its result.
#ifndef WEIR_SIM_FILL_RESULT_H_
#define WEIR_SIM_FILL_RESULT_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "results/result.pb.h"
#include "scenarios/cluster/network.h"
#include "scenarios/scenario.h"
#include "schedules/schedule.h"
#include "schedules/semantics.h"
#include "sim/costs/stage_costs.h"
#include "sim/engine/engine.h"
#include "sim/graph/pipeline_graph.h"
#include "sim/report/window.h"
#include "sim/simulate.h"

namespace weir::sim {

// One simulated run with all intermediate results.
struct SimulatedRun {
  schedules::Schedule schedule;
  schedules::Semantics semantics;
  Costs costs;
  PipelineGraph graph;
  Recording recording{0};
  double makespan_seconds = 0;
  Window window;

  double num_tasks() const { return graph.tasks.num_tasks(); }
};

// Prepares everything up to the task graph. Returns the errors of Simulate,
// except those of the run itself, and of ValidateSchedule.
absl::StatusOr<SimulatedRun> PrepareRun(
    const scenarios::ResolvedScenario& scenario,
    const scenarios::Network& network, schedules::Schedule schedule);

// Sets what follows from the recording. Returns FailedPrecondition if it is not
// complete: the schedule deadlocks.
absl::Status FinishRun(const scenarios::ResolvedScenario& scenario,
                       SimulatedRun* run);

// Returns inputs that refer to the arguments.
PipelineInputs InputsOf(const scenarios::ResolvedScenario& scenario,
                        const scenarios::Network& network,
                        const SimulatedRun& run);

// Returns the defaults in the form that results contain.
DefaultsOfResult ReportDefaults(const scenarios::UsedDefaults& used);

// Requires: the run is complete.
Result MakeResult(const scenarios::ResolvedScenario& scenario,
                  const scenarios::Network& network, const SimulatedRun& run,
                  const SimulateOptions& options);

}  // namespace weir::sim

#endif  // WEIR_SIM_FILL_RESULT_H_
