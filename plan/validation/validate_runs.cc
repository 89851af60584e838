// SPDX-License-Identifier: Apache-2.0
#include "plan/validation/validate_runs.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/interrupt.h"
#include "base/status_macros.h"
#include "plan/validation/calibrate_runs.h"
#include "results/result.pb.h"
#include "sim/simulate.h"

namespace weir::plan {
namespace {

struct ValidatedRun {
  results::MeasuredRun measured;
  absl::StatusOr<scenarios::ResolvedScenario> scenario;
  absl::StatusOr<Result> result = absl::CancelledError("not reached");
};

ValidatedRun ReadRow(const results::MeasuredTable& table,
                     const results::MeasuredRow& row,
                     const RowScenario& scenario) {
  ValidatedRun run;
  const absl::Status read =
      results::ReadRun(table, row, scenario.settings, &run.measured);
  if (run.measured.name.empty()) run.measured.name = scenario.describe();
  run.scenario = read.ok() ? scenario.resolve(run.measured.scenario) : read;
  return run;
}

// Simulates the runs that have a scenario, until interrupted.
absl::Status SimulateRuns(const ValidationOptions& options,
                          std::vector<ValidatedRun>* runs) {
  std::vector<ValidatedRun*> valid;
  for (ValidatedRun& run : *runs) {
    if (run.scenario.ok()) valid.push_back(&run);
  }
  int num_done = 0;
  Jobs jobs;
  jobs.num_jobs = static_cast<int>(valid.size());
  jobs.num_processes = options.num_processes;
  const auto report = [&] {
    if (options.progress) options.progress(num_done, jobs.num_jobs);
  };
  jobs.run = [&](int job) -> absl::StatusOr<std::string> {
    ASSIGN_OR_RETURN(const Result result, sim::Simulate(*valid[job]->scenario));
    return result.SerializeAsString();
  };
  jobs.done = [&](int job, const absl::StatusOr<std::string>& output) {
    ++num_done;
    report();
    absl::StatusOr<Result>& result = valid[job]->result;
    if (!output.ok()) {
      result = output.status();
    } else if (Result read; read.ParseFromString(*output)) {
      result = std::move(read);
    } else {
      result = absl::InternalError("a result cannot be read");
    }
  };
  jobs.stop = [&] {
    report();
    return Interrupted();
  };
  return RunJobs(jobs);
}

results::FlopsBasis BasisOf(const results::MeasuredRun& run,
                            const scenarios::ResolvedScenario& scenario) {
  const Transformer& transformer = scenario.model.transformer();
  return {run.formula, 1.0 * transformer.num_layers(),
          1.0 * transformer.hidden_size(), 1.0 * transformer.vocabulary_size()};
}

// Returns one standard deviation of the logarithm of a time that is not due to
// the parameters.
double NoiseOf(const Result& result) {
  const Uncertainty& uncertainty = result.uncertainty();
  return std::hypot(std::hypot(uncertainty.kernels(), uncertainty.step()),
                    uncertainty.collectives());
}

absl::StatusOr<results::Calibration> Calibrate(
    const std::vector<ValidatedRun>& runs, const std::string& label,
    const ValidationOptions& options) {
  std::vector<CalibrationRun> measured;
  for (const ValidatedRun& run : runs) {
    if (!run.scenario.ok() || !run.result.ok()) continue;
    const auto seconds = results::MeasuredBatchSeconds(
        run.measured, *run.result, BasisOf(run.measured, *run.scenario));
    if (!seconds.has_value() || !run.result->has_uncertainty()) continue;
    measured.push_back({&*run.scenario, run.result->batch_seconds(), *seconds,
                        NoiseOf(*run.result)});
  }
  CalibrationOptions calibration;
  calibration.source = absl::StrCat("weir validate --calibrate ", label);
  calibration.num_processes = options.num_processes;
  calibration.progress = options.calibration_progress;
  return CalibrateRuns(measured, calibration);
}

}  // namespace

absl::StatusOr<results::Accuracy> ValidateRuns(
    const results::MeasuredTable& table, const NewRowScenario& new_row,
    const ValidationOptions& options) {
  std::vector<ValidatedRun> runs;
  for (const results::MeasuredRow& row : table.rows) {
    runs.push_back(ReadRow(table, row, new_row()));
  }
  RETURN_IF_ERROR(SimulateRuns(options, &runs));
  results::Accuracy accuracy;
  accuracy.label = table.label;
  accuracy.num_runs = static_cast<int>(runs.size());
  accuracy.num_left_out = table.num_left_out;
  accuracy.runs = table.rows;
  for (const ValidatedRun& run : runs) {
    if (run.scenario.ok()) {
      results::CompareRun(run.measured, run.result,
                          BasisOf(run.measured, *run.scenario), &accuracy);
    } else {
      results::CompareRun(run.measured, run.scenario.status(), {}, &accuracy);
    }
  }
  if (options.calibrate && accuracy.num_not_reached == 0) {
    absl::StatusOr<results::Calibration> calibration =
        Calibrate(runs, table.label, options);
    if (calibration.ok()) {
      accuracy.calibration = *std::move(calibration);
    } else if (!absl::IsCancelled(calibration.status())) {
      return calibration.status();
    }
  }
  return accuracy;
}

}  // namespace weir::plan
