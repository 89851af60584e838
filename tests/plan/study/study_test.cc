// SPDX-License-Identifier: Apache-2.0
#include "plan/study/study.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "base/interrupt.h"
#include "base/textproto.h"
#include "plan/study/study_training.h"

namespace weir::plan::study_test {

using testing::HasSubstr;
using testing::SizeIs;

constexpr int kNumBatches = 4;

scenarios::ResolvedScenario Resolve(const std::string& schedule) {
  Scenario scenario;
  const absl::Status parsed = ParseTextProto("test", R"(
      parallelism { pipeline: 2 } num_microbatches: 2
      costs { stages { forward_seconds: 1 backward_seconds: 2 } })",
                                             &scenario);
  EXPECT_TRUE(parsed.ok()) << parsed;
  scenario.set_schedule(schedule);
  const auto resolved = scenarios::ResolveScenario("test", scenario);
  EXPECT_TRUE(resolved.ok()) << resolved.status();
  return *resolved;
}

StudyRequest Request(const std::vector<std::string>& schedules) {
  StudyRequest request;
  for (const std::string& schedule : schedules) {
    auto study_case = MakeStudyCase(Resolve(schedule), kNumBatches);
    EXPECT_TRUE(study_case.ok()) << study_case.status();
    request.cases.push_back(*std::move(study_case));
  }
  auto model = LoadStudyModel("", request.cases);
  EXPECT_TRUE(model.ok()) << model.status();
  request.model = *std::move(model);
  request.num_batches = kNumBatches;
  return request;
}

results::TrainStudy Simulated(const StudyRequest& request) {
  auto study = SimulateStudy(request);
  EXPECT_TRUE(study.ok()) << study.status();
  return *std::move(study);
}

results::TrainStudy Trained(const StudyRequest& request, int num_processes) {
  results::TrainStudy study = Simulated(request);
  StudyTrainingOptions options;
  options.num_processes = num_processes;
  const absl::Status trained = TrainStudyCases(request, options, &study);
  EXPECT_TRUE(trained.ok()) << trained;
  return study;
}

// GPipe takes (2 + 2 - 1) x 3 seconds; PipeDream takes 2 x 3 seconds and
// updates the weights after each microbatch.
TEST(StudyTest, BatchTimesAndUpdatesAreThoseOfTheSimulation) {
  const results::TrainStudy study = Simulated(Request({"gpipe", "pipedream"}));
  EXPECT_EQ(study.scenario, "test");
  EXPECT_EQ(study.model, "given costs");
  EXPECT_EQ(study.train_model, "tiny-gpt, 8 blocks of 16");
  EXPECT_EQ(study.num_batches, kNumBatches);
  EXPECT_EQ(study.samples_per_batch, 2 * kStudyMicrobatchSize);
  ASSERT_THAT(study.schedules, SizeIs(2));
  EXPECT_NEAR(study.schedules[0].batch_seconds, 9, 1e-9);
  EXPECT_EQ(study.schedules[0].updates_per_batch, 1);
  EXPECT_EQ(study.schedules[0].staleness_updates, 0);
  EXPECT_NEAR(study.schedules[1].batch_seconds, 6, 1e-9);
  EXPECT_EQ(study.schedules[1].updates_per_batch, 2);
  EXPECT_EQ(study.schedules[1].staleness_updates, 1);
}

TEST(StudyTest, FlushedSchedulesTrainAlikeAndStaleOnesDoNot) {
  const results::TrainStudy study =
      Trained(Request({"gpipe", "1f1b", "pipedream-2bw"}), 2);
  ASSERT_THAT(study.schedules, SizeIs(3));
  for (const results::StudySchedule& schedule : study.schedules) {
    ASSERT_THAT(schedule.curves, SizeIs(2)) << schedule.schedule;
    EXPECT_EQ(schedule.curves[0].seed, 1u);
    EXPECT_EQ(schedule.curves[1].seed, 2u);
    for (const results::StudyCurve& curve : schedule.curves) {
      EXPECT_THAT(curve.losses, SizeIs(kNumBatches)) << schedule.schedule;
    }
  }
  const std::vector<double>& gpipe = study.schedules[0].curves[0].losses;
  const std::vector<double>& flushed = study.schedules[1].curves[0].losses;
  const std::vector<double>& stale = study.schedules[2].curves[0].losses;
  for (int b = 0; b < kNumBatches; ++b) {
    EXPECT_NEAR(flushed[b], gpipe[b], 1e-12 * gpipe[b]) << b;
  }
  EXPECT_NEAR(stale[0], gpipe[0], 1e-12 * gpipe[0]);
  EXPECT_NE(stale[1], gpipe[1]);  // still reads the initial weights
  EXPECT_NE(study.schedules[0].curves[1].losses, gpipe);
}

TEST(StudyTest, LossesDoNotDependOnTheNumberOfProcesses) {
  const StudyRequest request = Request({"gpipe", "pipedream"});
  const results::TrainStudy one = Trained(request, 1);
  const results::TrainStudy four = Trained(request, 4);
  ASSERT_EQ(one.schedules.size(), four.schedules.size());
  for (size_t s = 0; s < one.schedules.size(); ++s) {
    ASSERT_EQ(one.schedules[s].curves.size(), four.schedules[s].curves.size());
    for (size_t c = 0; c < one.schedules[s].curves.size(); ++c) {
      EXPECT_EQ(one.schedules[s].curves[c].losses,
                four.schedules[s].curves[c].losses);
    }
  }
}

TEST(StudyTest, AnInterruptRemovesSchedulesWithoutCurves) {
  const StudyRequest request = Request({"gpipe", "pipedream"});
  results::TrainStudy study = Simulated(request);
  StudyTrainingOptions options;
  options.progress = [](int, int) {
    if (!Interrupted()) raise(SIGINT);
  };
  NoteInterrupt();
  const absl::Status trained = TrainStudyCases(request, options, &study);
  ForgetInterrupt();
  ExitOnInterrupt();
  ASSERT_TRUE(trained.ok()) << trained;
  for (const results::StudySchedule& schedule : study.schedules) {
    EXPECT_FALSE(schedule.curves.empty()) << schedule.schedule;
  }
}

// An update after each of two microbatches has half the learning rate, and all
// batches are one step of its schedule.
TEST(StudyTrainingTest, LearningRatesFollowTheSamplesOfAnUpdate) {
  StudyRequest request = Request({"gpipe", "pipedream"});
  request.learning_rate = 0.5;
  const auto flushed = StudyTrainingPlan(request, request.cases[0].schedule, 1);
  const auto each = StudyTrainingPlan(request, request.cases[1].schedule, 1);
  ASSERT_TRUE(flushed.ok()) << flushed.status();
  ASSERT_TRUE(each.ok()) << each.status();
  EXPECT_EQ(flushed->optimizers[0].learning_rate, 0.5);
  EXPECT_EQ(each->optimizers[0].learning_rate, 0.25);
  EXPECT_EQ(flushed->num_steps, kNumBatches);
  EXPECT_EQ(each->num_steps, 1);
}

TEST(StudyTest, EveryNumberOfStagesDividesTheBlocksOfThePreset) {
  std::vector<StudyCase> cases(2);
  cases[0].schedule.num_stages = 3;
  cases[1].schedule.num_stages = 4;
  const auto model = LoadStudyModel("", cases);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->transformer().num_layers(), 12u);
  const auto named = LoadStudyModel("gpt2-medium", cases);
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_EQ(named->transformer().num_layers(), 24u);
  EXPECT_EQ(named->name(), "gpt2-medium");
}

TEST(StudyTest, ImpossibleTrainingsAreRefusedBeforeTheSimulation) {
  EXPECT_THAT(
      std::string(
          MakeStudyCase(Resolve("edgepipe"), kNumBatches).status().message()),
      HasSubstr("edgepipe: is forward-only"));
  StudyRequest request = Request({"gpipe"});
  const auto large = LoadStudyModel("gpt3-175b", request.cases);
  ASSERT_TRUE(large.ok()) << large.status();
  request.model = *large;
  const auto study =
      SimulateStudy(request, [](const std::string&, double) { ADD_FAILURE(); });
  EXPECT_EQ(study.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(study.status().message()),
              HasSubstr("this machine has"));
}

}  // namespace weir::plan::study_test
