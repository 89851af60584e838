// SPDX-License-Identifier: Apache-2.0
#include "tools/accuracy/leave_one_out.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace weir::tools_leave_one_out_test {

using testing::HasSubstr;

MeasuredStep Step(const std::string& source, double log_error,
                  double deviation = 0.01, double elasticity = 1) {
  return {source, "program", log_error, elasticity, deviation, true};
}

TEST(LeaveOneOutTest, OneSourceFitsNothing) {
  const StepFit fit = FitSteps(std::vector{Step("a", 0.3), Step("a", 0.2)});
  EXPECT_EQ(fit.log_slowdown, 0);
  EXPECT_EQ(fit.residual, 0);
}

// The median over sources, however many steps one of them has.
TEST(LeaveOneOutTest, SourcesHaveTheSameWeight) {
  std::vector<MeasuredStep> steps = {Step("a", 0.1), Step("b", 0.2)};
  for (int i = 0; i < 100; ++i) steps.push_back(Step("c", 0.4));
  EXPECT_NEAR(FitSteps(steps).log_slowdown, 0.2, 1e-9);
}

TEST(LeaveOneOutTest, StepsThatAreNotFittedChangeNothing) {
  std::vector<MeasuredStep> steps = {Step("a", 0.1), Step("b", 0.2),
                                     Step("c", 0.3), Step("d", 5)};
  steps[3].fitted = false;
  const StepFit fit = FitSteps(steps);
  EXPECT_NEAR(fit.log_slowdown, 0.2, 1e-9);
  EXPECT_LT(fit.residual, 0.5);
}

// Half of the time is proportional to the slowdown.
TEST(LeaveOneOutTest, TheSlowdownActsThroughTheElasticity) {
  EXPECT_NEAR(FitSteps(std::vector{Step("a", 0.1, 0.01, 0.5),
                                   Step("b", 0.1, 0.01, 0.5)})
                  .log_slowdown,
              0.2, 1e-9);
}

// Two sources that differ from the fitted slowdown by d on either side: the
// variance between them is 2 d^2, the fit adds half of it, and the limit of
// Student's distribution with one degree of freedom is 6.31.
TEST(LeaveOneOutTest, FewSourcesGiveWideIntervals) {
  const StepFit fit =
      FitSteps(std::vector{Step("a", -0.1, 0), Step("b", 0.1, 0)});
  const double d = 0.1 - fit.log_slowdown, e = 0.1 + fit.log_slowdown;
  EXPECT_NEAR(fit.residual, 6.3138 / 1.6449 * std::sqrt(1.5 * (d * d + e * e)),
              1e-3);
}

// What a prediction states itself is not counted twice.
TEST(LeaveOneOutTest, TheResidualIsBeyondTheStatedError) {
  std::vector<MeasuredStep> steps, stated;
  for (const auto& [source, error] :
       {std::pair("a", -0.1), std::pair("b", 0.0), std::pair("c", 0.1)}) {
    steps.push_back(Step(source, error, 0));
    stated.push_back(Step(source, error, 0.1));
  }
  const double whole = FitSteps(steps).residual;
  EXPECT_NEAR(whole, 2.92 / 1.6449 * std::sqrt(0.01 * 4 / 3), 1e-3);
  EXPECT_NEAR(std::hypot(FitSteps(stated).residual, 0.1), whole, 1e-9);
}

// Nine of ten steps of sources drawn from the model that is fitted are inside.
TEST(LeaveOneOutTest, NineOfTenStepsOfNewSourcesAreInside) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  int num_inside = 0, num_steps = 0;
  for (int trial = 0; trial < 400; ++trial) {
    std::vector<MeasuredStep> steps;
    for (const char* source : {"a", "b", "c", "d", "e", "f"}) {
      const double mean = 0.2 + 0.1 * normal(random);
      for (int i = 0; i < 5; ++i) {
        steps.push_back(Step(source, mean + 0.04 * normal(random), 0.03));
      }
    }
    const StepFit fit =
        FitSteps(absl::MakeSpan(steps).subspan(0, steps.size() - 5));
    for (size_t i = steps.size() - 5; i < steps.size(); ++i) {
      ++num_steps;
      num_inside += IsInside(steps[i], fit) ? 1 : 0;
    }
  }
  EXPECT_GT(num_inside, 0.86 * num_steps);
  EXPECT_LT(num_inside, 0.96 * num_steps);
}

void WriteRows(const std::string& folder, const std::string& set,
               double predicted) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/" + set + ".csv")
      << "line,row,quantity,measured,predicted,error,fits_memory,reason,low,"
         "high\n2,run,step_seconds,12,"
      << predicted << ",0,true,," << 0.9 * predicted << "," << 1.1 * predicted
      << "\n";
}

// A source's error does not depend on its own rows.
TEST(LeaveOneOutTest, ASourceIsPredictedByTheOthers) {
  const std::string folder = testing::TempDir() + "/leave_one_out";
  std::vector<PublishedSet> sets;
  // Measured 12: a and b are predicted 20 % too fast, c is right.
  for (const auto& [name, predicted] :
       {std::pair("a", 10.0), std::pair("b", 10.0), std::pair("c", 12.0)}) {
    PublishedSet set;
    set.name = set.source = name;
    set.quantity = "step_seconds";
    set.measured = "x.csv";
    set.scenario = "x";
    set.device = absl::StrCat("G100", name[0] == 'b' ? " 500 W" : "");
    set.program = "p";
    sets.push_back(set);
    WriteRows(folder + "/plain", name, predicted);
    WriteRows(folder + "/slowed", name, 1.25 * predicted);
  }
  const auto devices =
      FitDevices(sets, folder + "/plain", folder + "/slowed", 1.25);
  ASSERT_TRUE(devices.ok()) << devices.status();
  ASSERT_EQ(devices->size(), 1);
  EXPECT_EQ((*devices)[0].num_sources, 3);
  const auto& left_out = (*devices)[0].left_out;
  ASSERT_EQ(left_out.size(), 3);
  // Left out, c is predicted with the slowdown of a and b.
  EXPECT_NEAR(std::exp(left_out[2].fit.log_slowdown), 1.2, 0.01);
  EXPECT_NEAR(left_out[2].steps[0].elasticity, 1, 1e-9);
  const std::string text = LeaveOneOutTables(*devices);
  EXPECT_THAT(text, HasSubstr("| G100 | c | p | 1 | 19.7 % | +19.7 %"));
  EXPECT_THAT(text, HasSubstr("| G100 500 W | b |"));
}

}  // namespace weir::tools_leave_one_out_test
