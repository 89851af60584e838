// SPDX-License-Identifier: Apache-2.0
#include "plan/validation/select_figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace weir::plan::select_figures_test {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int kRuns = 12;

// Three parameters with random sensitivities and no error.
SelectionProblem Problem() {
  SelectionProblem problem;
  std::mt19937 random(1);
  std::uniform_real_distribution<double> uniform(0, 1);
  problem.sensitivities.resize(3);
  for (int i = 0; i < kRuns; ++i) {
    for (auto& of_parameter : problem.sensitivities) {
      of_parameter.push_back(uniform(random));
    }
    problem.residuals.push_back(0.01 * (uniform(random) - 0.5));
  }
  problem.prior = {0.2, 0.2, 0.2};
  problem.noise.assign(kRuns, 0.02);
  return problem;
}

void Shift(int parameter, double shift, SelectionProblem* problem) {
  for (int i = 0; i < kRuns; ++i) {
    problem->residuals[i] += shift * problem->sensitivities[parameter][i];
  }
}

TEST(SelectFiguresTest, FindsTheParametersThatAreOff) {
  SelectionProblem problem = Problem();
  Shift(1, 0.3, &problem);
  FigureSelection selection = SelectFigures(problem, 3);
  ASSERT_THAT(selection.fit.parameters, ElementsAre(1));
  EXPECT_NEAR(selection.fit.shifts[0], 0.3, 0.02);
  EXPECT_LT(selection.error_after, 0.1 * selection.error_before);

  Shift(2, -0.4, &problem);
  selection = SelectFigures(problem, 3);
  EXPECT_THAT(selection.fit.parameters, testing::UnorderedElementsAre(1, 2));
  EXPECT_EQ(SelectFigures(problem, 1).fit.parameters.size(), 1);
}

TEST(SelectFiguresTest, ProposesNothingForNoise) {
  SelectionProblem problem = Problem();
  std::mt19937 random(2);
  std::normal_distribution<double> normal(0, 0.05);
  int num_proposals = 0;
  for (int trial = 0; trial < 20; ++trial) {
    for (double& residual : problem.residuals) residual = normal(random);
    const FigureSelection selection = SelectFigures(problem, 3);
    num_proposals += selection.fit.parameters.empty() ? 0 : 1;
  }
  EXPECT_LE(num_proposals, 3);
}

TEST(SelectFiguresTest, AnImplausibleChangeIsHeldBackByItsPrior) {
  SelectionProblem problem = Problem();
  Shift(0, 0.3, &problem);
  problem.prior[0] = 1e-4;
  const FigureFit fit = FitFigures(problem, {0});
  EXPECT_LT(std::abs(fit.shifts[0]), 1e-4);
  EXPECT_NEAR(fit.deviations[0], 1e-4, 1e-6);
}

TEST(SelectFiguresTest, FitsAreTheMostProbableValues) {
  SelectionProblem problem = Problem();
  Shift(0, 0.2, &problem);
  Shift(2, -0.1, &problem);
  const FigureFit fit = FitFigures(problem, {0, 2});
  const auto cost = [&](double x, double z) {
    double sum = x * x / 0.04 + z * z / 0.04;
    for (int i = 0; i < kRuns; ++i) {
      const double residual = problem.residuals[i] -
                              x * problem.sensitivities[0][i] -
                              z * problem.sensitivities[2][i];
      sum += residual * residual / (0.02 * 0.02);
    }
    return sum;
  };
  const double best = cost(fit.shifts[0], fit.shifts[1]);
  for (const double step : {-1e-3, 1e-3}) {
    EXPECT_GT(cost(fit.shifts[0] + step, fit.shifts[1]), best);
    EXPECT_GT(cost(fit.shifts[0], fit.shifts[1] + step), best);
  }
}

// The error after calibration is that of runs which neither chose nor fitted
// anything: one run that alone suggests a parameter does not lower it.
TEST(SelectFiguresTest, OneRunIsNoEvidence) {
  SelectionProblem problem = Problem();
  for (auto& of_parameter : problem.sensitivities) {
    of_parameter.assign(kRuns, 0);
  }
  problem.sensitivities[1][4] = 1;
  problem.residuals[4] = 0.4;
  const FigureSelection selection = SelectFigures(problem, 3);
  EXPECT_THAT(selection.fit.parameters, IsEmpty());
  EXPECT_EQ(selection.error_after, selection.error_before);
}

}  // namespace weir::plan::select_figures_test
