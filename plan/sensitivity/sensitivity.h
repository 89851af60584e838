// SPDX-License-Identifier: Apache-2.0
// Sensitivity analysis: how much the batch time of a scenario depends on each
// model parameter.
#ifndef WEIR_PLAN_SENSITIVITY_SENSITIVITY_H_
#define WEIR_PLAN_SENSITIVITY_SENSITIVITY_H_

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/worker_pool.h"
#include "results/result.pb.h"
#include "results/views/explanation.h"
#include "scenarios/scenario.h"

namespace weir::plan {

struct SensitivityOptions {
  int num_processes = DefaultProcesses();
  // Called about ten times a second, and whenever a parameter is done.
  std::function<void(int num_done, int num_figures)> progress = {};
  // A measured batch time to explain; 0: none.
  double measured_seconds = 0;
};

// Returns InvalidArgument if the scenario has given costs, which depend
// on no model parameters.
absl::Status CheckHasFigures(const scenarios::ResolvedScenario& scenario);

// Returns d ln(batch_seconds) / d ln(value) for each parameter of
// sim::FiguresOf(scenario), from an estimate with the value increased by 1 %.
// Worker processes make these estimates. Returns Cancelled if interrupted, and
// the errors of sim::Simulate.
absl::StatusOr<std::vector<double>> ElasticitiesOf(
    const scenarios::ResolvedScenario& scenario,
    const SensitivityOptions& options = {});

// Returns, for each parameter with an elasticity, the value with which the
// scenario takes `measured_seconds`, if a valid one within a factor of 100
// exists. Searches one parameter per job, in worker processes. Returns
// Cancelled if interrupted. Requires: `elasticities` are those of
// ElasticitiesOf(scenario); measured_seconds > 0.
absl::StatusOr<results::MeasuredExplanation> ExplainMeasured(
    const scenarios::ResolvedScenario& scenario,
    const std::vector<double>& elasticities, double batch_seconds,
    double measured_seconds, const SensitivityOptions& options = {});

// Returns the result together with the parameters that change its time, and
// with options.measured_seconds those that could explain it.
// Requires: `result` is that of sim::Simulate(scenario). Returns Simulate's
// errors, Cancelled when interrupted. Returns Unavailable if no process can be
// created.
absl::StatusOr<results::Explanation> ExplainResult(
    const scenarios::ResolvedScenario& scenario, Result result,
    const SensitivityOptions& options = {});

}  // namespace weir::plan

#endif  // WEIR_PLAN_SENSITIVITY_SENSITIVITY_H_
