// SPDX-License-Identifier: Apache-2.0
// Estimates of the memory and time of a run before it is built
// (base/size_limits.h).
#ifndef WEIR_SIM_RUN_SIZE_H_
#define WEIR_SIM_RUN_SIZE_H_

#include "absl/status/status.h"
#include "base/size_limits.h"
#include "scenarios/scenario.h"
#include "schedules/schedule.h"
#include "sim/graph/representatives.h"

namespace weir::sim {

// Estimates a run of `num_tasks` tasks on `num_gpus` GPUs, with its schedule,
// its result and the forked engine.
SizeEstimate EstimateRun(double num_tasks, double num_gpus);

// Returns InvalidArgument if the tasks need more memory or time than there is,
// or exceed the range of task numbers.
absl::Status CheckTasks(const scenarios::ResolvedScenario& scenario,
                        double num_tasks, double num_gpus);

// The same for a full run before its schedule exists: every GPU does at least
// one forward per microbatch and stage. Returns InvalidArgument likewise.
absl::Status CheckFullRun(const scenarios::ResolvedScenario& scenario,
                          int num_batches);

// The same for a reduced run, in which only representatives have tasks.
absl::Status CheckReducedRun(const scenarios::ResolvedScenario& scenario,
                             const schedules::Schedule& schedule,
                             const Representatives& gpus);

}  // namespace weir::sim

#endif  // WEIR_SIM_RUN_SIZE_H_
