// SPDX-License-Identifier: Apache-2.0
#include "plan/sensitivity/sensitivity.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/interrupt.h"
#include "base/status_macros.h"
#include "calibrate/profile/figures.h"
#include "plan/sensitivity/sensitivity.pb.h"
#include "sim/costs/scenario_figures.h"
#include "sim/simulate.h"

namespace weir::plan {
namespace {

// Small enough for a derivative, large enough that whole bytes do not matter.
constexpr double kFactor = 1.01;

// Runs in a worker process; returns a FigureElasticity.
absl::StatusOr<std::string> ElasticityOf(
    const scenarios::ResolvedScenario& scenario, int figure,
    uint64_t fingerprint, double batch_seconds) {
  const scenarios::ResolvedScenario changed =
      sim::WithFigure(scenario, figure, kFactor);
  FigureElasticity elasticity;
  ASSIGN_OR_RETURN(const uint64_t other, sim::FingerprintOf(changed));
  if (other != fingerprint) {
    ASSIGN_OR_RETURN(const Result result, sim::Simulate(changed));
    elasticity.set_elasticity(std::log(result.batch_seconds() / batch_seconds) /
                              std::log(kFactor));
  }
  return elasticity.SerializeAsString();
}

}  // namespace

absl::Status CheckHasFigures(const scenarios::ResolvedScenario& scenario) {
  if (!scenario.given_costs) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(scenario.label,
                   ": has given costs, which use no parameters; expected a "
                   "model and a cluster"));
}

absl::StatusOr<std::vector<double>> ElasticitiesOf(
    const scenarios::ResolvedScenario& scenario, double batch_seconds,
    const SensitivityOptions& options) {
  ASSIGN_OR_RETURN(const uint64_t fingerprint, sim::FingerprintOf(scenario));
  std::vector<double> elasticities(sim::FiguresOf(scenario).size(), 0);
  absl::Status failed;
  int num_done = 0;
  Jobs jobs;
  jobs.num_jobs = static_cast<int>(elasticities.size());
  jobs.num_processes = options.num_processes;
  const auto report = [&] {
    if (options.progress) options.progress(num_done, jobs.num_jobs);
  };
  jobs.run = [&](int job) {
    return ElasticityOf(scenario, job, fingerprint, batch_seconds);
  };
  jobs.done = [&](int job, const absl::StatusOr<std::string>& output) {
    ++num_done;
    report();
    FigureElasticity elasticity;
    if (!output.ok()) {
      failed.Update(output.status());
    } else if (elasticity.ParseFromString(*output)) {
      elasticities[job] = elasticity.elasticity();
    } else {
      failed.Update(absl::InternalError("an elasticity cannot be read"));
    }
  };
  jobs.stop = [&] {
    report();
    return Interrupted() || !failed.ok();
  };
  const absl::Status ran = RunJobs(jobs);
  if (Interrupted()) return absl::CancelledError("interrupted");
  RETURN_IF_ERROR(failed);
  RETURN_IF_ERROR(ran);
  return elasticities;
}

absl::StatusOr<results::Explanation> ExplainResult(
    const scenarios::ResolvedScenario& scenario, Result result,
    const SensitivityOptions& options) {
  const std::vector<sim::ScenarioFigure> figures = sim::FiguresOf(scenario);
  ASSIGN_OR_RETURN(const std::vector<double> elasticities,
                   ElasticitiesOf(scenario, result.batch_seconds(), options));
  results::Explanation explanation;
  explanation.result = std::move(result);
  for (size_t i = 0; i < figures.size(); ++i) {
    if (elasticities[i] == 0) {
      ++explanation.num_without_influence;
      continue;
    }
    const sim::ScenarioFigure& figure = figures[i];
    explanation.figures.push_back({figure.owner, figure.path, figure.value,
                                   std::string(calibrate::NameOf(figure.kind)),
                                   figure.source, elasticities[i]});
  }
  return explanation;
}

}  // namespace weir::plan
