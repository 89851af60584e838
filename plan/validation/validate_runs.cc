// SPDX-License-Identifier: Apache-2.0
#include "plan/validation/validate_runs.h"

#include <utility>

#include "base/interrupt.h"
#include "base/status_macros.h"
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
  for (const ValidatedRun& run : runs) {
    if (run.scenario.ok()) {
      results::CompareRun(run.measured, run.result,
                          BasisOf(run.measured, *run.scenario), &accuracy);
    } else {
      results::CompareRun(run.measured, run.scenario.status(), {}, &accuracy);
    }
  }
  return accuracy;
}

}  // namespace weir::plan
