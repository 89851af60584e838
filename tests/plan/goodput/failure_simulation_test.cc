// SPDX-License-Identifier: Apache-2.0
#include "plan/goodput/failure_simulation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "plan/goodput/interval.h"

namespace weir::plan::failure_simulation_test {

constexpr int kRuns = 3000;

RunModel Model() {
  RunModel model;
  model.failures = {{"gpu", 4000, true, 5000}, {"software", 12000, false, 0}};
  model.work_seconds = 1e5;
  model.interval_seconds = 500;
  model.checkpoint = {20, 20, 30};
  model.detection_seconds = 10;
  model.restart_seconds = 60;
  return model;
}

struct Mean {
  double value = 0, error = 0;
};

Mean MeanWall(const RunModel& model) {
  double sum = 0, squares = 0;
  for (int run = 0; run < kRuns; ++run) {
    const double wall = SimulateRun(model, 7, run).wall_seconds();
    sum += wall;
    squares += wall * wall;
  }
  const double mean = sum / kRuns;
  return {mean, std::sqrt((squares / kRuns - mean * mean) / kRuns)};
}

TEST(FailureSimulationTest, WithoutFailuresOnlyCheckpointsTakeTime) {
  RunModel model = Model();
  model.failures = {{"gpu", 1e30, true, 1}};
  const RunTimes times = SimulateRun(model, 1, 0);
  EXPECT_NEAR(times.wall_seconds(), 1e5 + 200 * 20, 1e-9 * 1e5);
  EXPECT_EQ(times.num_failures, 0);
  EXPECT_NEAR(times.stall_seconds, 4000, 1e-9 * 1e5);
  // The last one of 199.5 cycles has half the work.
  model.work_seconds = 99750;
  EXPECT_NEAR(SimulateRun(model, 1, 0).wall_seconds(), 99750 + 200 * 20,
              1e-9 * 1e5);
  // An asynchronous one ends when the last checkpoint is safe.
  model.checkpoint.safe_seconds = 100;
  EXPECT_NEAR(SimulateRun(model, 1, 0).wall_seconds(), 99750 + 199 * 20 + 100,
              1e-9 * 1e5);
}

TEST(FailureSimulationTest, TheMeanIsDalysExpectedTime) {
  for (const double interval : {100.0, 500.0, 2500.0}) {
    RunModel model = Model();
    model.interval_seconds = interval;
    const Mean mean = MeanWall(model);
    // Rates add up to 1 / 3000; recovery takes 100 s.
    const double expected = ExpectedSeconds(1e5, interval, 20, 100, 3000);
    EXPECT_NEAR(mean.value, expected, 4 * mean.error) << interval;
    EXPECT_LT(mean.error, 0.01 * expected);
  }
}

TEST(FailureSimulationTest, PartsAddUpAndAllWorkIsDone) {
  for (const int spares : {-1, 0, 1}) {
    for (const int replicas : {1, 4}) {
      for (const double safe : {20.0, 300.0}) {
        RunModel model = Model();
        model.num_spares = spares;
        model.num_elastic_replicas = replicas;
        model.checkpoint.safe_seconds = safe;
        const RunTimes times = SimulateRun(model, 3, 5);
        EXPECT_NEAR(times.useful_seconds, 1e5, 1e-9 * 1e5);
        EXPECT_NEAR(times.wall_seconds(), times.end_seconds, 1e-9 * 1e5);
        EXPECT_GT(times.num_failures, 0);
        for (const double part :
             {times.stall_seconds, times.lost_seconds, times.recovery_seconds,
              times.waiting_seconds, times.degraded_seconds}) {
          EXPECT_GE(part, -1e-6);
        }
        // Each failure costs its recovery, and loses a cycle at most.
        EXPECT_LE(times.lost_seconds,
                  times.num_failures * (4 * 500 + 20 + safe));
        EXPECT_LE(times.recovery_seconds, times.num_failures * 200);
        if (spares < 0) {
          EXPECT_EQ(times.waiting_seconds, 0);
          EXPECT_EQ(times.degraded_seconds, 0);
        }
        if (replicas == 1) {
          EXPECT_EQ(times.degraded_seconds, 0);
        }
      }
    }
  }
}

TEST(FailureSimulationTest, SparesAndElasticReplicasShortenTheWait) {
  RunModel model = Model();
  model.num_spares = 0;
  const double none = MeanWall(model).value;
  model.num_spares = 1;
  const double one = MeanWall(model).value;
  model.num_spares = 100;
  const double many = MeanWall(model).value;
  model.num_spares = -1;
  const double enough = MeanWall(model).value;
  EXPECT_GT(none, one);
  EXPECT_GT(one, many);
  EXPECT_EQ(many, enough);
  model.num_spares = 0;
  model.num_elastic_replicas = 8;
  const double elastic = MeanWall(model).value;
  EXPECT_LT(elastic, none);
  EXPECT_GT(elastic, enough);
}

TEST(FailureSimulationTest, SettingsSeeTheSameFailures) {
  // Twice the time between failures and twice everything else: twice the time.
  RunModel model = Model();
  const RunTimes times = SimulateRun(model, 11, 3);
  for (JobFailures& each : model.failures) {
    each.mean_seconds_between *= 2;
    each.repair_seconds *= 2;
  }
  model.work_seconds *= 2;
  model.interval_seconds *= 2;
  model.checkpoint = {40, 40, 60};
  model.detection_seconds *= 2;
  model.restart_seconds *= 2;
  const RunTimes twice = SimulateRun(model, 11, 3);
  EXPECT_EQ(twice.num_failures, times.num_failures);
  EXPECT_NEAR(twice.wall_seconds(), 2 * times.wall_seconds(),
              1e-9 * twice.wall_seconds());
  EXPECT_NE(SimulateRun(model, 12, 3).wall_seconds(), twice.wall_seconds());
  EXPECT_NE(SimulateRun(model, 11, 4).wall_seconds(), twice.wall_seconds());
}

TEST(FailureSimulationTest, AJobWithoutProgressEnds) {
  RunModel model = Model();
  model.failures = {{"gpu", 5, false, 0}};
  const RunTimes times = SimulateRun(model, 1, 0);
  EXPECT_LT(times.useful_seconds, model.work_seconds);
  EXPECT_LE(times.num_failures, kMostFailures + 1);
}

TEST(FailureSimulationTest, NormalNumbersAreStratified) {
  constexpr int kNumbers = 100;
  for (int run = 0; run < kNumbers; ++run) {
    const double part =
        std::erfc(-NormalNumber(5, run, kNumbers) / std::sqrt(2)) / 2;
    EXPECT_GT(part * kNumbers, run - 1e-9);
    EXPECT_LT(part * kNumbers, run + 1 + 1e-9);
  }
  EXPECT_EQ(NormalNumber(5, 3, kNumbers), NormalNumber(5, 3, kNumbers));
  EXPECT_NE(NormalNumber(5, 3, kNumbers), NormalNumber(6, 3, kNumbers));
}

}  // namespace weir::plan::failure_simulation_test
