// SPDX-License-Identifier: Apache-2.0
// Simulations of runs with changed parameters, in worker processes.
#ifndef WEIR_PLAN_VALIDATION_CHANGED_RUNS_H_
#define WEIR_PLAN_VALIDATION_CHANGED_RUNS_H_

#include <functional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/validation/calibrate_runs.h"
#include "scenarios/scenario.h"

namespace weir::plan {

// A simulation of a run with changed parameters.
struct ChangedRun {
  const scenarios::ResolvedScenario* scenario;
  std::vector<std::pair<int, double>> factors;  // parameter, factor
};

// Returns [job]: the seconds of a batch. Calls `progress` as
// CalibrationOptions::progress. Returns Cancelled if interrupted, and the first
// error of a simulation.
absl::StatusOr<std::vector<double>> SimulateChanged(
    const std::vector<ChangedRun>& changed, const CalibrationOptions& options,
    const std::function<void(int num_done)>& progress);

}  // namespace weir::plan

#endif  // WEIR_PLAN_VALIDATION_CHANGED_RUNS_H_
