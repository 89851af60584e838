// SPDX-License-Identifier: Apache-2.0
// Chooses the few parameters whose values measured runs suggest to change, by
// cross-validation. Pure statistics.
#ifndef WEIR_PLAN_VALIDATION_SELECT_FIGURES_H_
#define WEIR_PLAN_VALIDATION_SELECT_FIGURES_H_

#include <vector>

namespace weir::plan {

// A linear model of logarithms:
//   residuals[i] = sum over parameters j of sensitivities[j][i] x_j + noise,
// where x_j is the logarithm of the factor of parameter j. Its prior is normal
// with mean 0 and standard deviation prior[j], so that a large factor needs
// strong evidence; the noise of run i is normal with deviation noise[i].
struct SelectionProblem {
  std::vector<double> residuals;  // [run]: ln(measured / predicted seconds)
  std::vector<std::vector<double>> sensitivities;  // [parameter][run]
  std::vector<double> prior;                       // [parameter], > 0
  std::vector<double> noise;                       // [run], > 0
};

struct FigureFit {
  std::vector<int> parameters;
  std::vector<double> shifts;      // most probable x_j of these parameters
  std::vector<double> deviations;  // of these, given the runs
};

// Returns the most probable shifts of some parameters, all others being 0.
FigureFit FitFigures(const SelectionProblem& problem,
                     const std::vector<int>& parameters);

struct FigureSelection {
  FigureFit fit;  // no parameters: nothing is proposed
  // Mean over runs of |predicted / measured - 1| without changes, and with
  // those that are chosen and fitted without the run; and one standard error of
  // the mean difference.
  double error_before = 0, error_after = 0, gain_standard_error = 0;
};

// Adds up to `max_parameters` parameters one at a time: each time the one with
// the smallest leave-one-out error, as long as it lowers the error by more than
// one standard error of the difference, and by at least a tenth. Repeats this
// choice without each run in turn to obtain error_after. Proposes nothing
// unless the error is lower by more than one standard error.
FigureSelection SelectFigures(const SelectionProblem& problem,
                              int max_parameters);

}  // namespace weir::plan

#endif  // WEIR_PLAN_VALIDATION_SELECT_FIGURES_H_
