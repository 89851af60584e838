// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/interrupt.h"
#include "base/status_macros.h"
#include "base/worker_pool.h"
#include "calibrate/profile/figures.h"
#include "cli/options/messages.h"
#include "cli/options/output_files.h"
#include "cli/options/overrides.h"
#include "cli/weir/commands.h"
#include "results/views/explanation.h"
#include "sim/costs/scenario_figures.h"
#include "sim/simulate.h"

namespace weir::cli {
namespace {

// Small enough for a derivative, large enough that whole bytes do not matter.
constexpr double kFactor = 1.01;

// Runs in a separate process; returns a double as bytes.
absl::StatusOr<std::string> ElasticityOf(
    const scenarios::ResolvedScenario& scenario, int figure,
    uint64_t fingerprint, double batch_seconds) {
  const scenarios::ResolvedScenario changed =
      sim::WithFigure(scenario, figure, kFactor);
  double elasticity = 0;
  ASSIGN_OR_RETURN(const uint64_t other, sim::FingerprintOf(changed));
  if (other != fingerprint) {
    ASSIGN_OR_RETURN(const Result result, sim::Simulate(changed));
    elasticity =
        std::log(result.batch_seconds() / batch_seconds) / std::log(kFactor);
  }
  std::string bytes(sizeof(double), '\0');
  std::memcpy(bytes.data(), &elasticity, sizeof(double));
  return bytes;
}

absl::StatusOr<std::vector<double>> Elasticities(
    const Flags& flags, const scenarios::ResolvedScenario& scenario,
    const std::vector<sim::ScenarioFigure>& figures, double batch_seconds) {
  ASSIGN_OR_RETURN(const uint64_t fingerprint, sim::FingerprintOf(scenario));
  std::vector<double> elasticities(figures.size(), 0);
  absl::Status failed;
  ProgressLine progress(flags.output);
  int num_done = 0;
  const auto show = [&] {
    progress.Show(absl::StrCat("[", num_done, "/", figures.size(), "] figures"),
                  1.0 * num_done / std::max<size_t>(figures.size(), 1));
  };
  Jobs jobs;
  jobs.num_jobs = static_cast<int>(figures.size());
  jobs.num_processes = flags.num_jobs > 0 ? static_cast<int>(flags.num_jobs)
                                          : DefaultProcesses();
  jobs.run = [&](int job) {
    return ElasticityOf(scenario, job, fingerprint, batch_seconds);
  };
  jobs.done = [&](int job, const absl::StatusOr<std::string>& output) {
    ++num_done;
    show();
    if (!output.ok()) {
      failed.Update(output.status());
    } else if (output->size() == sizeof(double)) {
      std::memcpy(&elasticities[job], output->data(), sizeof(double));
    }
  };
  jobs.stop = [&] {
    show();
    return Interrupted() || !failed.ok();
  };
  NoteInterrupt();
  const absl::Status ran = RunJobs(jobs);
  ExitOnInterrupt();
  if (Interrupted()) return absl::CancelledError("interrupted");
  RETURN_IF_ERROR(failed);
  RETURN_IF_ERROR(ran);
  return elasticities;
}

absl::StatusOr<results::Explanation> Explain(const Flags& flags) {
  ASSIGN_OR_RETURN(const scenarios::ResolvedScenario scenario,
                   ResolveFlags(flags.scenario));
  if (scenario.textbook) {
    return absl::InvalidArgumentError(
        absl::StrCat(scenario.label,
                     ": has costs given by hand, which rest on no figures; "
                     "expected a model and a cluster"));
  }
  results::Explanation explanation;
  {
    ProgressLine progress(flags.output);
    sim::SimulateOptions options;
    options.progress = [&](double done) {
      progress.Show(scenario.scenario.schedule(), done);
    };
    ASSIGN_OR_RETURN(explanation.result, sim::Simulate(scenario, options));
  }
  const std::vector<sim::ScenarioFigure> figures = sim::FiguresOf(scenario);
  ASSIGN_OR_RETURN(const std::vector<double> elasticities,
                   Elasticities(flags, scenario, figures,
                                explanation.result.batch_seconds()));
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

}  // namespace

int RunExplain(const Flags& flags) {
  const absl::StatusOr<results::Explanation> explanation = Explain(flags);
  if (!explanation.ok()) return PrintError(explanation.status(), flags.output);
  const absl::Status printed =
      PrintResult(flags.output.format == OutputFlags::Format::kJson
                      ? results::ExplanationJson(flags.command, *explanation)
                      : results::ExplanationTable(*explanation));
  if (!printed.ok()) return PrintError(printed, flags.output);
  Results results;
  *results.add_results() = explanation->result;
  PrintWarnings(results, flags.output);
  return kExitOk;
}

}  // namespace weir::cli
