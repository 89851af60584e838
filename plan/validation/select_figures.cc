// SPDX-License-Identifier: Apache-2.0
#include "plan/validation/select_figures.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace weir::plan {
namespace {

// A parameter is worth changing if the error falls by this part of it.
constexpr double kLeastGain = 0.1;

using SmallMatrix = std::vector<std::vector<double>>;

// Returns |predicted / measured - 1| if ln(measured / predicted) is `residual`.
double RelativeLoss(double residual) {
  return std::abs(std::exp(-residual) - 1);
}

double MeanOf(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

struct Gain {
  double mean = 0, standard_error = 0;
  bool significant() const { return mean > standard_error; }
};

Gain GainOf(const std::vector<double>& before,
            const std::vector<double>& after) {
  std::vector<double> gains, squares;
  for (size_t i = 0; i < before.size(); ++i) {
    gains.push_back(before[i] - after[i]);
  }
  const double mean = MeanOf(gains);
  for (const double gain : gains) {
    squares.push_back((gain - mean) * (gain - mean));
  }
  const double n = static_cast<double>(gains.size());
  return {mean, n > 1 ? std::sqrt(MeanOf(squares) / (n - 1)) : HUGE_VAL};
}

// Inverts a symmetric positive definite matrix of a few rows.
SmallMatrix Inverse(SmallMatrix a) {
  const size_t n = a.size();
  SmallMatrix inverse(n, std::vector<double>(n, 0));
  for (size_t i = 0; i < n; ++i) inverse[i][i] = 1;
  for (size_t i = 0; i < n; ++i) {
    const double pivot = a[i][i];
    for (size_t j = 0; j < n; ++j) {
      a[i][j] /= pivot;
      inverse[i][j] /= pivot;
    }
    for (size_t k = 0; k < n; ++k) {
      if (k == i) continue;
      const double factor = a[k][i];
      for (size_t j = 0; j < n; ++j) {
        a[k][j] -= factor * a[i][j];
        inverse[k][j] -= factor * inverse[i][j];
      }
    }
  }
  return inverse;
}

// The problem restricted to some runs.
class RunSubset {
 public:
  RunSubset(const SelectionProblem& problem, std::vector<int> runs)
      : problem_(problem), runs_(std::move(runs)) {}

  // Returns the inverse of the posterior's precision matrix.
  SmallMatrix Covariance(const std::vector<int>& parameters) const {
    const size_t n = parameters.size();
    SmallMatrix precision(n, std::vector<double>(n, 0));
    for (size_t a = 0; a < n; ++a) {
      const double prior = problem_.prior[parameters[a]];
      precision[a][a] = 1 / (prior * prior);
      for (size_t b = 0; b < n; ++b) {
        for (const int run : runs_) {
          precision[a][b] += Sensitivity(parameters[a], run) *
                             Sensitivity(parameters[b], run) / Variance(run);
        }
      }
    }
    return Inverse(std::move(precision));
  }

  std::vector<double> Shifts(const std::vector<int>& parameters,
                             const SmallMatrix& covariance) const {
    std::vector<double> shifts(parameters.size(), 0);
    for (size_t a = 0; a < parameters.size(); ++a) {
      for (size_t b = 0; b < parameters.size(); ++b) {
        for (const int run : runs_) {
          shifts[a] += covariance[a][b] * Sensitivity(parameters[b], run) *
                       problem_.residuals[run] / Variance(run);
        }
      }
    }
    return shifts;
  }

  double Residual(const std::vector<int>& parameters,
                  const std::vector<double>& shifts, int run) const {
    double residual = problem_.residuals[run];
    for (size_t a = 0; a < parameters.size(); ++a) {
      residual -= shifts[a] * Sensitivity(parameters[a], run);
    }
    return residual;
  }

  // Returns [run of the subset]: its loss when fitted without it, in closed
  // form: residual / (1 - leverage), which is exact for a linear model with a
  // normal prior.
  std::vector<double> LeaveOneOutLosses(
      const std::vector<int>& parameters) const {
    const SmallMatrix covariance = Covariance(parameters);
    const std::vector<double> shifts = Shifts(parameters, covariance);
    std::vector<double> losses;
    for (const int run : runs_) {
      double leverage = 0;
      for (size_t a = 0; a < parameters.size(); ++a) {
        for (size_t b = 0; b < parameters.size(); ++b) {
          leverage += Sensitivity(parameters[a], run) * covariance[a][b] *
                      Sensitivity(parameters[b], run) / Variance(run);
        }
      }
      losses.push_back(RelativeLoss(Residual(parameters, shifts, run) /
                                    std::max(1 - leverage, 1e-12)));
    }
    return losses;
  }

  // Adds parameters one at a time, see SelectFigures.
  std::vector<int> Choose(int max_parameters) const {
    std::vector<int> chosen;
    std::vector<double> losses = LeaveOneOutLosses(chosen);
    while (static_cast<int>(chosen.size()) < max_parameters) {
      int best = -1;
      std::vector<double> best_losses;
      for (int j = 0; j < static_cast<int>(problem_.prior.size()); ++j) {
        if (std::find(chosen.begin(), chosen.end(), j) != chosen.end()) {
          continue;
        }
        std::vector<int> trial = chosen;
        trial.push_back(j);
        std::vector<double> trial_losses = LeaveOneOutLosses(trial);
        if (best >= 0 && MeanOf(trial_losses) >= MeanOf(best_losses)) continue;
        best = j;
        best_losses = std::move(trial_losses);
      }
      if (best < 0) break;
      const Gain gain = GainOf(losses, best_losses);
      if (!gain.significant() || gain.mean < kLeastGain * MeanOf(losses)) break;
      chosen.push_back(best);
      losses = std::move(best_losses);
    }
    return chosen;
  }

 private:
  double Sensitivity(int parameter, int run) const {
    return problem_.sensitivities[parameter][run];
  }
  double Variance(int run) const {
    return problem_.noise[run] * problem_.noise[run];
  }

  const SelectionProblem& problem_;
  std::vector<int> runs_;
};

std::vector<int> RunsWithout(size_t num_runs, int left_out) {
  std::vector<int> runs;
  for (int i = 0; i < static_cast<int>(num_runs); ++i) {
    if (i != left_out) runs.push_back(i);
  }
  return runs;
}

}  // namespace

FigureFit FitFigures(const SelectionProblem& problem,
                     const std::vector<int>& parameters) {
  const RunSubset all(problem, RunsWithout(problem.residuals.size(), -1));
  const SmallMatrix covariance = all.Covariance(parameters);
  FigureFit fit;
  fit.parameters = parameters;
  fit.shifts = all.Shifts(parameters, covariance);
  for (size_t a = 0; a < parameters.size(); ++a) {
    fit.deviations.push_back(std::sqrt(covariance[a][a]));
  }
  return fit;
}

FigureSelection SelectFigures(const SelectionProblem& problem,
                              int max_parameters) {
  const size_t num_runs = problem.residuals.size();
  std::vector<double> before, after;
  for (int i = 0; i < static_cast<int>(num_runs); ++i) {
    const RunSubset others(problem, RunsWithout(num_runs, i));
    const std::vector<int> chosen = others.Choose(max_parameters);
    const std::vector<double> shifts =
        others.Shifts(chosen, others.Covariance(chosen));
    before.push_back(RelativeLoss(problem.residuals[i]));
    after.push_back(RelativeLoss(others.Residual(chosen, shifts, i)));
  }
  const Gain gain = GainOf(before, after);
  FigureSelection selection;
  selection.error_before = MeanOf(before);
  selection.error_after = MeanOf(after);
  selection.gain_standard_error = gain.standard_error;
  if (!gain.significant()) return selection;
  const RunSubset all(problem, RunsWithout(num_runs, -1));
  selection.fit = FitFigures(problem, all.Choose(max_parameters));
  return selection;
}

}  // namespace weir::plan
