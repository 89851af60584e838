// SPDX-License-Identifier: Apache-2.0
// Compares with the artifact of Perseus (github.com/ml-energy/zeus, branch
// kronos, sosp24_data) in the folder perseus of $WEIR_DATA.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/csv.h"
#include "base/files.h"
#include "plan/energy/frequency_plan.h"
#include "schedules/registry.h"

namespace weir::plan::perseus_test {

// Power of an A100 that waits, a constant of the artifact.
constexpr double kBlockingWatts = 83.64;

std::string Folder() {
  const char* data = std::getenv("WEIR_DATA");
  return data == nullptr ? "" : absl::StrCat(data, "/perseus");
}

FrequencyRequest Request(const std::string& model, int microbatches,
                         double unit_seconds) {
  FrequencyRequest request;
  request.name = model;
  const std::string path =
      absl::StrCat(Folder(), "/", model, "+a100_sxm_bf16.csv");
  request.profile = *ReadClockProfile(path, *ReadFile(path));
  schedules::ScheduleSpec spec;
  spec.num_ranks = request.profile.num_stages;
  spec.num_microbatches = microbatches;
  request.schedule = *schedules::GenerateSchedule("1f1b", spec);
  request.blocking_watts = kBlockingWatts;
  request.unit_seconds = unit_seconds;
  return request;
}

CsvTable Table(const std::string& name) {
  const std::string path = absl::StrCat(Folder(), "/", name);
  const auto table = ReadCsv(path, ReadFile(path).value_or(""));
  EXPECT_TRUE(table.ok()) << table.status();
  return *table;
}

std::vector<double> Column(const CsvTable& table, const std::string& name) {
  return *(*table.Column(name)).Numbers(-1e12, 1e12);
}

TEST(PerseusTest, BaselinesTakeThePublishedTime) {
  if (!std::filesystem::exists(Folder())) {
    GTEST_SKIP() << "needs the folder perseus in $WEIR_DATA";
  }
  const CsvTable table = Table("envpipe_result.csv");
  const std::vector<double> microbatches = Column(table, "num_microbatches");
  const std::vector<double> seconds = Column(table, "iteration_time");
  ASSERT_EQ(table.num_rows(), 8);
  for (int row = 0; row < table.num_rows(); ++row) {
    FrequencyRequest request = Request((*table.Column("model")).Text(row),
                                       static_cast<int>(microbatches[row]), 0);
    request.num_deadlines = 1;
    const auto report = PlanFrequencies(request);
    ASSERT_TRUE(report.ok()) << report.status();
    // The artifact multiplies all times by 10.
    EXPECT_NEAR(10 * report->baseline_seconds / seconds[row], 1, 1e-3) << row;
  }
}

// Intrinsic savings of table 6 with 12, 24, 48 and 96 microbatches, in %.
const std::map<std::string, std::vector<double>>& Published() {
  static const auto& savings = *new std::map<std::string, std::vector<double>>{
      {"gpt3-175b", {15.20, 14.19, 13.62, 13.32}},
      {"bloom", {10.47, 7.06, 5.23, 4.28}}};
  return savings;
}

TEST(PerseusTest, SavingsWithoutSlowdownAreThePublishedOnes) {
  if (!std::filesystem::exists(Folder())) {
    GTEST_SKIP() << "needs the folder perseus in $WEIR_DATA";
  }
  for (const auto& [model, savings] : Published()) {
    for (int i = 0; i < 4; ++i) {
      FrequencyRequest request = Request(model, 12 << i, 0);
      request.num_deadlines = 1;
      const auto report = PlanFrequencies(request);
      ASSERT_TRUE(report.ok()) << report.status();
      const double saved =
          100 * (1 - report->fastest.joules / report->baseline_joules);
      EXPECT_NEAR(saved, savings[i], 1) << model << " " << (12 << i);
      EXPECT_LE(report->fastest.seconds, report->baseline_seconds * 1.0001);
    }
  }
}

// The artifact's energy of a baseline follows from its published saving and
// the fastest point of its frontier. Its times are rounded down to 1 ms, and
// the baseline waits until the end of the fastest plan, which at Bloom's
// highest clock is earlier than its own end.
TEST(PerseusTest, BaselinesTakeThePublishedEnergyInItsUnits) {
  if (!std::filesystem::exists(Folder())) {
    GTEST_SKIP() << "needs the folder perseus in $WEIR_DATA";
  }
  for (const auto& [model, savings] : Published()) {
    for (const int i : {0, 2}) {
      const int microbatches = 12 << i;
      FrequencyRequest request = Request(model, microbatches, 0.001);
      request.num_deadlines = 1;
      const auto report = PlanFrequencies(request);
      ASSERT_TRUE(report.ok()) << report.status();
      const CsvTable table = Table(absl::StrCat(
          "frontier_a100_sxm/", model, "_bf16_mb", microbatches, ".csv"));
      const double fastest = Column(table, "energy").back();
      const double baseline =
          report->baseline_joules -
          kBlockingWatts * 8 *
              (report->baseline_seconds - report->fastest.seconds);
      EXPECT_NEAR(baseline * (1 - savings[i] / 100) / fastest, 1, 1e-3)
          << model << " " << microbatches;
      EXPECT_NEAR(report->fastest.seconds, Column(table, "time").back(), 1e-9);
    }
  }
}

TEST(PerseusTest, NoDeadlineTakesMoreEnergyThanPublished) {
  if (!std::filesystem::exists(Folder())) {
    GTEST_SKIP() << "needs the folder perseus in $WEIR_DATA";
  }
  for (const std::string model : {"gpt3-175b", "bloom"}) {
    for (const int microbatches : {12, 48}) {
      FrequencyRequest request = Request(model, microbatches, 0.001);
      const CsvTable table = Table(absl::StrCat(
          "frontier_a100_sxm/", model, "_bf16_mb", microbatches, ".csv"));
      request.deadlines = Column(table, "time");
      const std::vector<double> joules = Column(table, "energy");
      const auto report = PlanFrequencies(request);
      ASSERT_TRUE(report.ok()) << report.status();
      EXPECT_TRUE(report->infeasible_deadlines.empty());
      ASSERT_EQ(report->points.size(), joules.size());
      double worst = 0;
      for (size_t i = 0; i < joules.size(); ++i) {
        const FrequencyPoint& point = report->points[i];
        EXPECT_LE(point.seconds, point.deadline_seconds * (1 + 1e-9));
        worst = std::max(worst, point.joules / joules[i]);
      }
      // The acceptance is 1.01.
      EXPECT_LT(worst, 1) << model << " " << microbatches;
    }
  }
}

// With measured times, which are up to 1 ms longer than the artifact's, a plan
// is within the acceptance wherever the least energy that is possible with
// clocks of any fineness leaves 0.25 % for clocks of the table.
TEST(PerseusTest, MeasuredTimesTakeLittleMoreEnergyThanPublishedOrPossible) {
  if (!std::filesystem::exists(Folder())) {
    GTEST_SKIP() << "needs the folder perseus in $WEIR_DATA";
  }
  int num_deadlines = 0, num_above = 0, num_impossible = 0;
  for (const std::string model : {"gpt3-175b", "bloom"}) {
    for (const int microbatches : {12, 48}) {
      FrequencyRequest request = Request(model, microbatches, 0);
      const CsvTable table = Table(absl::StrCat(
          "frontier_a100_sxm/", model, "_bf16_mb", microbatches, ".csv"));
      request.deadlines = Column(table, "time");
      const std::vector<double> joules = Column(table, "energy");
      const auto report = PlanFrequencies(request);
      ASSERT_TRUE(report.ok()) << report.status();
      ASSERT_EQ(report->points.size() + report->infeasible_deadlines.size(),
                joules.size());
      for (size_t i = 0; i < report->points.size(); ++i) {
        const FrequencyPoint& point = report->points[i];
        EXPECT_LE(point.seconds, point.deadline_seconds * (1 + 1e-9));
        EXPECT_LE(point.joules,
                  std::max(1.01 * joules[i], 1.0025 * point.lower_bound_joules))
            << model << " " << microbatches << " " << point.deadline_seconds;
        ++num_deadlines;
        num_above += point.joules > 1.01 * joules[i] ? 1 : 0;
        num_impossible += point.lower_bound_joules > 1.01 * joules[i] ? 1 : 0;
      }
    }
  }
  // Counts that docs/energy.md reports.
  RecordProperty("deadlines", num_deadlines);
  RecordProperty("above", num_above);
  RecordProperty("impossible", num_impossible);
  EXPECT_LE(num_above - num_impossible, num_deadlines / 200);
}

}  // namespace weir::plan::perseus_test
