// SPDX-License-Identifier: Apache-2.0
// Validation: simulates the runs of a table of measurements and compares the
// predictions with the measured values.
#ifndef WEIR_PLAN_VALIDATION_VALIDATE_RUNS_H_
#define WEIR_PLAN_VALIDATION_VALIDATE_RUNS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/worker_pool.h"
#include "results/compare/accuracy.h"
#include "results/compare/measured_run.h"
#include "results/compare/measured_table.h"
#include "scenarios/scenario.h"

namespace weir::plan {

// The scenario of one row while it is read.
struct RowScenario {
  // The columns that change it; see results::ReadRun.
  std::vector<results::RunSetting> settings;
  // Returns the sizes that the settings have set, which name a row that has no
  // name (scenarios::DescribeSizes).
  std::function<std::string()> describe;
  // Returns the scenario with the settings. `base` is the preset or file that
  // the row names; empty: the same for all rows.
  std::function<absl::StatusOr<scenarios::ResolvedScenario>(
      const std::string& base)>
      resolve;
};

// Called once per row.
using NewRowScenario = std::function<RowScenario()>;

struct ValidationOptions {
  int num_processes = DefaultProcesses();
  // Called about ten times a second, and whenever a run is done.
  std::function<void(int num_done, int num_runs)> progress = {};
  // Proposes parameters, see CalibrateRuns: Accuracy.calibration.
  bool calibrate = false;
  std::function<void(int num_done, int num_simulations)> calibration_progress =
      {};
};

// Returns the comparison of every row, in the order of the table. Rows that
// cannot be read, resolved or simulated are listed as skipped, with reasons.
// Each simulation runs in a worker process; the comparison does not depend on
// their number. When interrupted, counts the rows that were not simulated
// (num_not_reached). Returns Unavailable if no process can be created.
// Requires: results::CheckColumns(table, settings) is OK.
absl::StatusOr<results::Accuracy> ValidateRuns(
    const results::MeasuredTable& table, const NewRowScenario& new_row,
    const ValidationOptions& options = {});

}  // namespace weir::plan

#endif  // WEIR_PLAN_VALIDATION_VALIDATE_RUNS_H_
