// SPDX-License-Identifier: Apache-2.0
// Proposes values of model parameters from the measured times of several runs.
#ifndef WEIR_PLAN_VALIDATION_CALIBRATE_RUNS_H_
#define WEIR_PLAN_VALIDATION_CALIBRATE_RUNS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/worker_pool.h"
#include "results/compare/calibration.h"
#include "scenarios/scenario.h"

namespace weir::plan {

// Fewer runs do not show whether a change helps a run that was left out.
inline constexpr int kLeastCalibrationRuns = 6;
inline constexpr int kMostProposals = 3;

struct CalibrationRun {
  const scenarios::ResolvedScenario* scenario = nullptr;
  double predicted_seconds = 0, measured_seconds = 0;
  // One standard deviation of ln(measured / predicted) given all parameters.
  double noise = 0;
};

struct CalibrationOptions {
  std::string source;  // of the proposed values: "weir validate runs.csv"
  int num_processes = DefaultProcesses();
  // Called about ten times a second, and whenever a simulation is done.
  std::function<void(int num_done, int num_simulations)> progress = {};
};

// Simulates every run with each uncertain parameter raised by 1 %, one at a
// time, and chooses parameters by SelectFigures, with their relative errors as
// priors. Fits the chosen ones again with derivatives at the proposed values.
// Values outside the valid range are moved to its end. Simulates all
// runs with the proposed values for Calibration.error_applied. Worker processes
// run the simulations. Returns Cancelled if interrupted. Requires: the runs
// have models, not given costs.
absl::StatusOr<results::Calibration> CalibrateRuns(
    const std::vector<CalibrationRun>& runs, const CalibrationOptions& options);

}  // namespace weir::plan

#endif  // WEIR_PLAN_VALIDATION_CALIBRATE_RUNS_H_
