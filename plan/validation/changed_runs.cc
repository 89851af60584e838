// SPDX-License-Identifier: Apache-2.0
#include "plan/validation/changed_runs.h"

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "base/interrupt.h"
#include "base/status_macros.h"
#include "plan/validation/calibrate_runs.h"
#include "plan/validation/calibration.pb.h"
#include "sim/costs/scenario_figures.h"
#include "sim/fast/fast_simulator.h"

namespace weir::plan {

absl::StatusOr<std::vector<double>> SimulateChanged(
    const std::vector<ChangedRun>& changed, const CalibrationOptions& options,
    const std::function<void(int num_done)>& progress) {
  std::vector<double> seconds(changed.size(), 0);
  std::optional<sim::FastSimulator> simulator;  // of a worker process
  absl::Status failed;
  int num_done = 0;
  Jobs jobs;
  jobs.num_jobs = static_cast<int>(changed.size());
  jobs.num_processes = options.num_processes;
  jobs.run = [&](int job) -> absl::StatusOr<std::string> {
    if (!simulator.has_value()) simulator.emplace();
    scenarios::ResolvedScenario scenario = *changed[job].scenario;
    for (const auto& [index, factor] : changed[job].factors) {
      scenario = sim::WithFigure(scenario, index, factor);
    }
    ASSIGN_OR_RETURN(const sim::FastEstimate estimate,
                     simulator->Estimate(scenario));
    SimulatedSeconds message;
    message.set_seconds(estimate.batch_seconds);
    return message.SerializeAsString();
  };
  jobs.done = [&](int job, const absl::StatusOr<std::string>& output) {
    progress(++num_done);
    SimulatedSeconds message;
    if (!output.ok()) {
      failed.Update(output.status());
    } else if (message.ParseFromString(*output)) {
      seconds[job] = message.seconds();
    } else {
      failed.Update(absl::InternalError("a message cannot be read"));
    }
  };
  jobs.stop = [&] {
    progress(num_done);
    return Interrupted() || !failed.ok();
  };
  const absl::Status ran = RunJobs(jobs);
  if (Interrupted()) return absl::CancelledError("interrupted");
  RETURN_IF_ERROR(failed);
  RETURN_IF_ERROR(ran);
  return seconds;
}

}  // namespace weir::plan
