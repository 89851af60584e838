// SPDX-License-Identifier: Apache-2.0
#include "plan/sensitivity/sensitivity.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/interrupt.h"
#include "base/status_macros.h"
#include "calibrate/profile/figures.h"
#include "plan/sensitivity/parameters.h"
#include "plan/sensitivity/run_settings.h"
#include "plan/sensitivity/sensitivity.pb.h"
#include "plan/sensitivity/solve_factor.h"
#include "sim/costs/scenario_figures.h"
#include "sim/fast/fast_simulator.h"

namespace weir::plan {
namespace {

// Small enough for a derivative, large enough that whole bytes do not matter.
constexpr double kFactor = 1.01;

// Elasticities of one scenario, in a worker process.
class Elasticities {
 public:
  explicit Elasticities(const scenarios::ResolvedScenario& scenario)
      : scenario_(scenario), before_(simulator_.Estimate(scenario)) {}

  // Returns a FigureElasticity. Compares estimates with each other, since a
  // parameter without influence then has an elasticity of exactly 0.
  absl::StatusOr<std::string> Of(int figure) {
    RETURN_IF_ERROR(before_.status());
    ASSIGN_OR_RETURN(
        const sim::FastEstimate after,
        simulator_.Estimate(sim::WithFigure(scenario_, figure, kFactor)));
    FigureElasticity elasticity;
    elasticity.set_elasticity(
        std::log(after.batch_seconds / before_->batch_seconds) /
        std::log(kFactor));
    return elasticity.SerializeAsString();
  }

 private:
  const scenarios::ResolvedScenario& scenario_;
  sim::FastSimulator simulator_;
  const absl::StatusOr<sim::FastEstimate> before_;
};

// Runs jobs in worker processes until they are done or one fails, and reports
// progress. `read` gets the output of each job.
absl::Status RunParameterJobs(
    int num_jobs, const SensitivityOptions& options,
    const std::function<absl::StatusOr<std::string>(int job)>& run,
    const std::function<bool(int job, const std::string& output)>& read) {
  absl::Status failed;
  int num_done = 0;
  Jobs jobs;
  jobs.num_jobs = num_jobs;
  jobs.num_processes = options.num_processes;
  const auto report = [&] {
    if (options.progress) options.progress(num_done, jobs.num_jobs);
  };
  jobs.run = run;
  jobs.done = [&](int job, const absl::StatusOr<std::string>& output) {
    ++num_done;
    report();
    if (!output.ok()) {
      failed.Update(output.status());
    } else if (!read(job, *output)) {
      failed.Update(absl::InternalError("a message cannot be read"));
    }
  };
  jobs.stop = [&] {
    report();
    return Interrupted() || !failed.ok();
  };
  absl::Status ran = RunJobs(jobs);
  if (Interrupted()) return absl::CancelledError("interrupted");
  RETURN_IF_ERROR(failed);
  return ran;
}

// Runs in a worker process; returns an ExplainingFactor.
std::string ExplainingFactorOf(const scenarios::ResolvedScenario& scenario,
                               int figure, double elasticity,
                               double batch_seconds, double measured_seconds,
                               sim::FastSimulator* simulator) {
  constexpr double kMostFactor = 100;
  FactorProblem problem;
  problem.seconds = [&](double factor) -> std::optional<double> {
    const auto estimate =
        simulator->Estimate(sim::WithFigure(scenario, figure, factor));
    if (!estimate.ok()) return {};
    return estimate->batch_seconds;
  };
  problem.target_seconds = measured_seconds;
  problem.start_seconds = batch_seconds;
  problem.elasticity = elasticity;
  problem.low = ValidFactor(scenario, figure, 1 / kMostFactor);
  problem.high = ValidFactor(scenario, figure, kMostFactor);
  ExplainingFactor message;
  if (const auto factor = SolveFactor(problem)) message.set_factor(*factor);
  return message.SerializeAsString();
}

// Estimates the other settings of the run in worker processes.
absl::StatusOr<std::vector<results::SettingCause>> SettingCauses(
    const scenarios::ResolvedScenario& scenario, double batch_seconds,
    double measured_seconds, const SensitivityOptions& options) {
  const std::vector<RunSetting> settings = OtherSettings(scenario);
  std::vector<results::SettingCause> causes(settings.size());
  std::optional<sim::FastSimulator> simulator;  // of a worker process
  RETURN_IF_ERROR(RunParameterJobs(
      static_cast<int>(settings.size()), options,
      [&](int job) {
        if (!simulator.has_value()) simulator.emplace();
        SettingSeconds message;
        message.set_seconds(
            SecondsWith(settings[job], scenario.label, &*simulator));
        return message.SerializeAsString();
      },
      [&](int job, const std::string& output) {
        SettingSeconds message;
        if (!message.ParseFromString(output)) return false;
        causes[job] = {settings[job].text, message.seconds()};
        return true;
      }));
  return NearerSettings(std::move(causes), batch_seconds, measured_seconds);
}

bool ExplainsBetter(const results::FigureCause& a,
                    const results::FigureCause& b) {
  if (a.deviations.has_value() != b.deviations.has_value()) {
    return a.deviations.has_value();
  }
  if (a.deviations.has_value()) return *a.deviations < *b.deviations;
  return std::abs(std::log(a.factor())) < std::abs(std::log(b.factor()));
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
    const scenarios::ResolvedScenario& scenario,
    const SensitivityOptions& options) {
  std::vector<double> values(sim::FiguresOf(scenario).size(), 0);
  std::optional<Elasticities> elasticities;  // of a worker process
  RETURN_IF_ERROR(RunParameterJobs(
      static_cast<int>(values.size()), options,
      [&](int job) {
        if (!elasticities.has_value()) elasticities.emplace(scenario);
        return elasticities->Of(job);
      },
      [&](int job, const std::string& output) {
        FigureElasticity elasticity;
        if (!elasticity.ParseFromString(output)) return false;
        values[job] = elasticity.elasticity();
        return true;
      }));
  return values;
}

absl::StatusOr<results::MeasuredExplanation> ExplainMeasured(
    const scenarios::ResolvedScenario& scenario,
    const std::vector<double>& elasticities, double batch_seconds,
    double measured_seconds, const SensitivityOptions& options) {
  std::vector<int> influential;
  for (size_t i = 0; i < elasticities.size(); ++i) {
    if (elasticities[i] != 0) influential.push_back(static_cast<int>(i));
  }
  const std::vector<Parameter> parameters = ParametersOf(scenario);
  std::vector<ExplainingFactor> factors(influential.size());
  std::optional<sim::FastSimulator> simulator;  // of a worker process
  RETURN_IF_ERROR(RunParameterJobs(
      static_cast<int>(influential.size()), options,
      [&](int job) {
        if (!simulator.has_value()) simulator.emplace();
        return ExplainingFactorOf(scenario, influential[job],
                                  elasticities[influential[job]], batch_seconds,
                                  measured_seconds, &*simulator);
      },
      [&](int job, const std::string& output) {
        return factors[job].ParseFromString(output);
      }));
  results::MeasuredExplanation explanation;
  explanation.measured_seconds = measured_seconds;
  ASSIGN_OR_RETURN(
      explanation.settings,
      SettingCauses(scenario, batch_seconds, measured_seconds, options));
  for (size_t i = 0; i < influential.size(); ++i) {
    const Parameter& parameter = parameters[influential[i]];
    if (!factors[i].has_factor()) {
      explanation.insufficient.push_back(parameter.setting());
      continue;
    }
    const double factor = factors[i].factor();
    results::FigureCause& cause = explanation.causes.emplace_back();
    cause.owner = parameter.owner;
    cause.path = parameter.setting();
    cause.kind = std::string(calibrate::NameOf(parameter.kind));
    cause.value = parameter.value;
    cause.explaining_value = factor * parameter.value;
    cause.relative_error = parameter.relative_error;
    if (parameter.relative_error > 0) {
      cause.deviations = std::abs(std::log(factor)) / parameter.relative_error;
    }
  }
  std::stable_sort(explanation.causes.begin(), explanation.causes.end(),
                   ExplainsBetter);
  return explanation;
}

absl::StatusOr<results::Explanation> ExplainResult(
    const scenarios::ResolvedScenario& scenario, Result result,
    const SensitivityOptions& options) {
  const std::vector<sim::ScenarioFigure> figures = sim::FiguresOf(scenario);
  ASSIGN_OR_RETURN(const std::vector<double> elasticities,
                   ElasticitiesOf(scenario, options));
  results::Explanation explanation;
  if (options.measured_seconds > 0) {
    ASSIGN_OR_RETURN(
        explanation.measured,
        ExplainMeasured(scenario, elasticities, result.batch_seconds(),
                        options.measured_seconds, options));
  }
  explanation.result = std::move(result);
  for (size_t i = 0; i < figures.size(); ++i) {
    if (elasticities[i] == 0) {
      ++explanation.num_without_influence;
      continue;
    }
    const sim::ScenarioFigure& figure = figures[i];
    explanation.figures.push_back({figure.owner, figure.path, figure.value,
                                   std::string(calibrate::NameOf(figure.kind)),
                                   figure.source, elasticities[i],
                                   figure.format});
  }
  return explanation;
}

}  // namespace weir::plan
