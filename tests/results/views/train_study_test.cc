// SPDX-License-Identifier: Apache-2.0
#include "results/views/train_study.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace weir::results::train_study_test {

using testing::AllOf;
using testing::HasSubstr;

// Returns losses that fall by `step` per batch, starting at 4.
StudySchedule Falling(const std::string& name, double step, double seconds) {
  StudySchedule schedule;
  schedule.schedule = name;
  schedule.batch_seconds = seconds;
  StudyCurve curve;
  for (int batch = 0; batch < 10; ++batch) {
    curve.losses.push_back(4 - step * batch);
  }
  schedule.curves = {curve};
  return schedule;
}

TrainStudy TwoSchedules() {
  TrainStudy study;
  study.scenario = "s";
  study.samples_per_batch = 16;
  study.num_batches = 10;
  study.schedules = {Falling("quick", 0.2, 3), Falling("stale", 0.1, 1)};
  return study;
}

TEST(TrainStudyTest, TheTargetIsTheLowestLossThatAllReach) {
  const TrainStudy study = TwoSchedules();
  EXPECT_NEAR(TargetLoss(study), 4 - 0.1 * 9, 1e-12);
  const auto quick = SummaryOf(study, study.schedules[0], 3.1);
  EXPECT_EQ(quick.batches_to_target, 6);  // 4 - 0.2 x 5 = 3.0
  const auto stale = SummaryOf(study, study.schedules[1], 3.1 + 1e-9);
  EXPECT_EQ(stale.batches_to_target, 10);
  EXPECT_NEAR(stale.final_loss, 3.1, 1e-12);
}

TEST(TrainStudyTest, WhatDoesNotLearnSetsNoTargetAndNeverReachesIt) {
  TrainStudy study = TwoSchedules();
  study.schedules.push_back(Falling("explodes", -1e6, 1));
  study.schedules.push_back(Falling("no number", 0.1, 1));
  study.schedules[3].curves[0].losses.back() =
      std::numeric_limits<double>::quiet_NaN();
  EXPECT_NEAR(TargetLoss(study), 3.1, 1e-12);
  EXPECT_FALSE(
      SummaryOf(study, study.schedules[2], 3.1).batches_to_target.has_value());
  const std::string table = TrainStudyTable(study);
  EXPECT_THAT(table, AllOf(HasSubstr("diverges"), HasSubstr("never")));
  const auto json = nlohmann::json::parse(TrainStudyJson(study));
  EXPECT_TRUE(json["schedules"][3]["final_loss"].is_null());
  EXPECT_FALSE(json["schedules"][2].contains("seconds_to_target"));
}

TEST(TrainStudyTest, SeedsAreAveragedAndTheirSpreadShown) {
  TrainStudy study = TwoSchedules();
  StudyCurve higher = study.schedules[0].curves[0];
  higher.seed = 2;
  for (double& loss : higher.losses) loss += 0.5;
  study.schedules[0].curves.push_back(higher);
  EXPECT_NEAR(SmoothedLosses(study, study.schedules[0])[0], 4.25, 1e-12);
  const auto summary = SummaryOf(study, study.schedules[0], 0);
  EXPECT_NEAR(summary.final_spread, 0.5, 1e-12);
  EXPECT_FALSE(summary.batches_to_target.has_value());
}

TEST(TrainStudyTest, CsvHasALinePerBatch) {
  TrainStudy study = TwoSchedules();
  study.schedules[1].schedule = "chimera:a=1,b=2";
  const std::string csv = TrainStudyCsv(study);
  EXPECT_THAT(csv, HasSubstr("\nquick,1,2,32,2,6,3.800000\n"));
  EXPECT_THAT(csv, HasSubstr("\n\"chimera:a=1,b=2\",1,1,16,1,1,4.000000\n"));
}

TEST(TrainStudyTest, AnInterruptedStudyShowsWhatItHas) {
  TrainStudy study = TwoSchedules();
  study.schedules[1].curves.clear();
  EXPECT_NEAR(TargetLoss(study), 4 - 0.2 * 9, 1e-12);
  EXPECT_THAT(TrainStudyTable(study), HasSubstr("quick"));
}

}  // namespace weir::results::train_study_test
