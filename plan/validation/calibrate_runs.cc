// SPDX-License-Identifier: Apache-2.0
#include "plan/validation/calibrate_runs.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/textproto.h"
#include "calibrate/profile/device_profile.h"
#include "calibrate/profile/figures.h"
#include "plan/sensitivity/parameters.h"
#include "plan/validation/calibration_candidates.h"
#include "plan/validation/changed_runs.h"
#include "plan/validation/profile_overlay.h"
#include "plan/validation/select_figures.h"

namespace weir::plan {
namespace {

constexpr double kStep = 1.01;
// Elasticities below this are rounding errors of the simulation.
constexpr double kLeastElasticity = 1e-5;
constexpr double kMostFactor = 100;

class Calibrator {
 public:
  Calibrator(const std::vector<CalibrationRun>& runs,
             const CalibrationOptions& options)
      : runs_(runs), options_(options), candidates_(CandidatesOf(runs)) {}

  absl::StatusOr<results::Calibration> Run() {
    ASSIGN_OR_RETURN(const SelectionProblem problem, MakeProblem());
    const FigureSelection selection = SelectFigures(problem, kMostProposals);
    calibration_.num_runs = static_cast<int>(runs_.size());
    calibration_.error_before = selection.error_before;
    calibration_.error_after = selection.error_after;
    calibration_.gain_standard_error = selection.gain_standard_error;
    if (selection.fit.parameters.empty()) {
      calibration_.why_none = absl::StrCat(
          "no change of up to ", kMostProposals,
          " parameters within their uncertainty lowers the error of runs left "
          "out by more than its standard error");
      return std::move(calibration_);
    }
    ASSIGN_OR_RETURN(const FigureFit fit, Refine(problem, selection.fit));
    for (size_t i = 0; i < fit.parameters.size(); ++i) {
      Propose(groups_[fit.parameters[i]], fit.shifts[i], fit.deviations[i]);
    }
    RETURN_IF_ERROR(Apply());
    MakeOverlays();
    return std::move(calibration_);
  }

 private:
  // A proposed parameter and its factor.
  struct Change {
    const CalibrationCandidate* candidate;
    double factor;
  };

  // Returns [job]: the seconds of a batch. Reports progress.
  absl::StatusOr<std::vector<double>> SimulateAll(
      const std::vector<ChangedRun>& changed) {
    const int num_before = num_done_;
    num_done_ += static_cast<int>(changed.size());
    return SimulateChanged(changed, options_, [&](int done) {
      if (options_.progress) options_.progress(num_before + done, num_done_);
    });
  }

  // Returns the run with the parameters of a fit shifted, one of them (unless
  // -1) by 1 % more.
  ChangedRun Shifted(size_t run, const FigureFit& fit, int more) const {
    ChangedRun changed{runs_[run].scenario, {}};
    for (size_t i = 0; i < fit.parameters.size(); ++i) {
      const int index = groups_[fit.parameters[i]].representative->index[run];
      if (index < 0) continue;
      changed.factors.emplace_back(
          index,
          std::exp(fit.shifts[i]) * (more == static_cast<int>(i) ? kStep : 1));
    }
    return changed;
  }

  // Fits the chosen parameters again with the derivatives at their proposed
  // values, since a large change is not linear.
  absl::StatusOr<FigureFit> Refine(const SelectionProblem& problem,
                                   FigureFit fit) {
    constexpr int kRounds = 3;
    const int num_parameters = static_cast<int>(fit.parameters.size());
    for (int round = 0; round < kRounds; ++round) {
      std::vector<ChangedRun> changed;
      for (size_t run = 0; run < runs_.size(); ++run) {
        for (int more = -1; more < num_parameters; ++more) {
          changed.push_back(Shifted(run, fit, more));
        }
      }
      ASSIGN_OR_RETURN(const std::vector<double> seconds, SimulateAll(changed));
      SelectionProblem local;
      local.sensitivities.resize(num_parameters);
      for (const int parameter : fit.parameters) {
        local.prior.push_back(problem.prior[parameter]);
      }
      local.noise = problem.noise;
      for (size_t run = 0; run < runs_.size(); ++run) {
        const double* at = &seconds[run * (num_parameters + 1)];
        local.residuals.push_back(
            std::log(runs_[run].measured_seconds / at[0]));
        for (int i = 0; i < num_parameters; ++i) {
          const double elasticity =
              std::log(at[i + 1] / at[0]) / std::log(kStep);
          local.sensitivities[i].push_back(elasticity);
          local.residuals.back() += elasticity * fit.shifts[i];
        }
      }
      std::vector<int> all(num_parameters);
      std::iota(all.begin(), all.end(), 0);
      const FigureFit refined = FitFigures(local, all);
      fit.shifts = refined.shifts;
      fit.deviations = refined.deviations;
    }
    return fit;
  }

  // Simulates the derivatives; parameters that change no run are left out.
  absl::StatusOr<SelectionProblem> MakeProblem() {
    std::vector<ChangedRun> changed;
    std::vector<std::pair<size_t, size_t>> of_job;  // candidate, run
    for (size_t run = 0; run < runs_.size(); ++run) {
      for (size_t j = 0; j < candidates_.size(); ++j) {
        const int index = candidates_[j].index[run];
        if (index < 0) continue;
        changed.push_back({runs_[run].scenario, {{index, kStep}}});
        of_job.emplace_back(j, run);
      }
    }
    ASSIGN_OR_RETURN(const std::vector<double> seconds, SimulateAll(changed));
    std::vector<std::vector<double>> all(candidates_.size(),
                                         std::vector<double>(runs_.size(), 0));
    for (size_t job = 0; job < seconds.size(); ++job) {
      const auto& [candidate, run] = of_job[job];
      const double elasticity =
          std::log(seconds[job] / runs_[run].predicted_seconds) /
          std::log(kStep);
      if (std::abs(elasticity) > kLeastElasticity) {
        all[candidate][run] = elasticity;
      }
    }
    SelectionProblem problem;
    for (size_t j = 0; j < candidates_.size(); ++j) {
      if (std::all_of(all[j].begin(), all[j].end(),
                      [](double e) { return e == 0; })) {
        continue;
      }
      ++calibration_.num_parameters;
      AddToGroups(&candidates_[j], std::move(all[j]), &groups_);
    }
    for (const CandidateGroup& group : groups_) {
      problem.sensitivities.push_back(group.sensitivities);
      problem.prior.push_back(std::sqrt(group.variance));
    }
    for (const CalibrationRun& run : runs_) {
      problem.residuals.push_back(
          std::log(run.measured_seconds / run.predicted_seconds));
      problem.noise.push_back(run.noise);
    }
    return problem;
  }

  void Propose(const CandidateGroup& group, double shift, double deviation) {
    const CalibrationCandidate* candidate = group.representative;
    size_t run = 0;
    while (candidate->index[run] < 0) ++run;
    const double limit =
        ValidFactor(*runs_[run].scenario, candidate->index[run],
                    shift > 0 ? kMostFactor : 1 / kMostFactor);
    const double factor = shift > 0 ? std::min(std::exp(shift), limit)
                                    : std::max(std::exp(shift), limit);
    changes_.push_back({candidate, factor});
    const Parameter& parameter = candidate->parameter;
    calibration_.figures.push_back(
        {parameter.owner, parameter.setting(),
         std::string(calibrate::NameOf(parameter.kind)), parameter.value,
         factor * parameter.value, parameter.relative_error, deviation,
         group.others});
  }

  absl::Status Apply() {
    std::vector<ChangedRun> changed;
    for (size_t run = 0; run < runs_.size(); ++run) {
      ChangedRun& with = changed.emplace_back();
      with.scenario = runs_[run].scenario;
      for (const Change& change : changes_) {
        const int index = change.candidate->index[run];
        if (index >= 0) with.factors.emplace_back(index, change.factor);
      }
      // A changed link may become equal to a later one, which changes only the
      // indices after it.
      std::sort(with.factors.begin(), with.factors.end(),
                [](const auto& a, const auto& b) { return a.first > b.first; });
    }
    ASSIGN_OR_RETURN(const std::vector<double> seconds, SimulateAll(changed));
    for (size_t run = 0; run < runs_.size(); ++run) {
      calibration_.error_applied +=
          std::abs(seconds[run] / runs_[run].measured_seconds - 1) /
          static_cast<double>(runs_.size());
    }
    return absl::OkStatus();
  }

  std::vector<ReplacedFigure> ReplacedOf(Parameter::Of of,
                                         const std::string& owner) const {
    std::vector<ReplacedFigure> replaced;
    for (size_t i = 0; i < changes_.size(); ++i) {
      const Parameter& parameter = changes_[i].candidate->parameter;
      if (parameter.of != of || parameter.owner != owner) continue;
      Figure figure;
      figure.set_value(calibration_.figures[i].proposed);
      figure.set_kind(Figure::FITTED);
      figure.set_source(
          absl::StrCat(options_.source, ", ", runs_.size(),
                       " runs; before: ", calibration_.figures[i].value));
      figure.set_relative_error(
          calibration_.figures[i].proposed_relative_error);
      replaced.push_back({parameter.path, figure});
    }
    return replaced;
  }

  // Adds an overlay for each changed profile and runtime. Those of clusters do
  // not exist.
  void MakeOverlays() {
    std::vector<std::pair<Parameter::Of, std::string>> seen;
    for (const Change& change : changes_) {
      const Parameter& parameter = change.candidate->parameter;
      const std::pair key(parameter.of, parameter.owner);
      if (parameter.of == Parameter::Of::kCluster ||
          std::find(seen.begin(), seen.end(), key) != seen.end()) {
        continue;
      }
      seen.push_back(key);
      size_t run = 0;
      while (change.candidate->index[run] < 0) ++run;
      const auto replaced = ReplacedOf(parameter.of, parameter.owner);
      const scenarios::ResolvedScenario& scenario = *runs_[run].scenario;
      calibration_.overlays.push_back(
          parameter.of == Parameter::Of::kRuntime
              ? results::ProfileOverlay{"--runtime", parameter.owner,
                                        PrintTextProto(OverlayOf(
                                            scenario.runtime,
                                            scenario.scenario.runtime(),
                                            replaced))}
              : results::ProfileOverlay{
                    "--profile", parameter.owner,
                    DeviceOverlayText(scenario, parameter.owner, replaced)});
    }
  }

  static std::string DeviceOverlayText(
      const scenarios::ResolvedScenario& scenario, const std::string& owner,
      const std::vector<ReplacedFigure>& replaced) {
    const DeviceProfile* device = &scenario.device;
    for (const DeviceProfile& other : scenario.other_devices) {
      if (other.name() == owner) device = &other;
    }
    std::string base = scenario.scenario.profile();
    // With several kinds of GPUs, each group of nodes names its own profile.
    if (base.empty()) {
      for (const NodeGroup& group : scenario.cluster.groups()) {
        const auto loaded = calibrate::LoadDeviceProfile(group.node().device());
        if (loaded.ok() && loaded->name() == owner) {
          base = group.node().device();
        }
      }
    }
    return PrintTextProto(OverlayOf(*device, base, replaced));
  }

  const std::vector<CalibrationRun>& runs_;
  const CalibrationOptions& options_;
  const std::vector<CalibrationCandidate> candidates_;
  std::vector<CandidateGroup> groups_;  // [parameter of the problem]
  std::vector<Change> changes_;
  results::Calibration calibration_;
  int num_done_ = 0;  // simulations that were started
};

}  // namespace

absl::StatusOr<results::Calibration> CalibrateRuns(
    const std::vector<CalibrationRun>& runs,
    const CalibrationOptions& options) {
  if (static_cast<int>(runs.size()) < kLeastCalibrationRuns) {
    results::Calibration calibration;
    calibration.num_runs = static_cast<int>(runs.size());
    calibration.why_none = absl::StrCat(
        runs.size(), runs.size() == 1 ? " run has" : " runs have",
        " a measured time that depends on parameters, expected at least ",
        kLeastCalibrationRuns,
        ": fewer do not show whether a change helps a run left out");
    return calibration;
  }
  return Calibrator(runs, options).Run();
}

}  // namespace weir::plan
