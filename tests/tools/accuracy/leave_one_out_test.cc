// SPDX-License-Identifier: Apache-2.0
#include "tools/accuracy/leave_one_out.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
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
  EXPECT_EQ(fit.slower_residual, 0);
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
  EXPECT_LT(fit.slower_residual, 0.1);
}

// Half of the time is proportional to the slowdown.
TEST(LeaveOneOutTest, TheSlowdownActsThroughTheElasticity) {
  EXPECT_NEAR(FitSteps(std::vector{Step("a", 0.1, 0.01, 0.5),
                                   Step("b", 0.1, 0.01, 0.5)})
                  .log_slowdown,
              0.2, 1e-9);
}

TEST(LeaveOneOutTest, ResidualsCoverEachSide) {
  std::vector<MeasuredStep> steps;
  for (const char* source : {"a", "b", "c"}) {
    steps.push_back(Step(source, 0));
    steps.push_back(Step(source, 0));
    steps.push_back(Step(source, 0.3));
  }
  const StepFit fit = FitSteps(steps);
  EXPECT_NEAR(fit.log_slowdown, 0, 1e-9);
  EXPECT_EQ(fit.faster_residual, 0);
  // 0.3 is within 1.645 standard deviations.
  EXPECT_NEAR(std::hypot(fit.slower_residual, 0.01), 0.3 / 1.645, 0.005);
  for (const MeasuredStep& step : steps) EXPECT_TRUE(IsInside(step, fit));
  EXPECT_FALSE(IsInside(Step("d", 0.32), fit));
  EXPECT_FALSE(IsInside(Step("d", -0.02), fit));
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
