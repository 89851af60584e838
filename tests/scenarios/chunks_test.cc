// SPDX-License-Identifier: Apache-2.0
#include "scenarios/chunks.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "schedules/interop/schedule_text.h"
#include "tests/scenarios/small_scenarios.h"

namespace weir::scenarios::chunks_test {

const schedules::ScheduleKind& Kind(const std::string& name) {
  return **schedules::FindScheduleKind(name);
}

int LegalChunksOf(const std::string& name, int num_chunks) {
  schedules::ScheduleSpec spec;
  spec.num_ranks = 4;
  spec.num_microbatches = 8;
  spec.num_chunks = num_chunks;
  return LegalChunks(Kind(name), spec);
}

double ForwardSeconds(const Scenario& scenario) {
  return scenario.costs().stages(0).forward_seconds();
}

TEST(ChunksTest, LegalChunksAreTheGivenOnesOrElseOneOrTwo) {
  EXPECT_EQ(LegalChunksOf("1f1b", 1), 1);
  EXPECT_EQ(LegalChunksOf("1f1b", 3), 1);
  EXPECT_EQ(LegalChunksOf("interleaved-1f1b", 1), 2);
  EXPECT_EQ(LegalChunksOf("interleaved-1f1b", 3), 3);
  EXPECT_EQ(LegalChunksOf("zb-v", 1), 2);
}

TEST(ChunksTest, CostsOfAStageAreScaledAndThoseOfAMessageAreNot) {
  GivenCosts costs = *ParseCosts("f=1,i=2,w=3,o=4,h=5,p=6,z=7,a=8,g=9,c=10");
  ScaleCosts(0.5, &costs);
  const GivenCosts::Stage& stage = costs.stages(0);
  EXPECT_EQ(stage.forward_seconds(), 0.5);
  EXPECT_EQ(stage.backward_input_seconds(), 1);
  EXPECT_EQ(stage.backward_weight_seconds(), 1.5);
  EXPECT_FALSE(stage.has_backward_seconds());
  EXPECT_EQ(stage.overlapped_seconds(), 2);
  EXPECT_EQ(stage.offload_seconds(), 2.5);
  EXPECT_EQ(stage.prediction_seconds(), 3);
  EXPECT_EQ(stage.codec_seconds(), 7);
  EXPECT_EQ(stage.activation_bytes(), 4);
  EXPECT_EQ(stage.weight_gradient_bytes(), 4.5);
  EXPECT_EQ(costs.hop_seconds(), 10);
}

TEST(ChunksTest, CostsGivenStageByStageAreNotScaled) {
  GivenCosts costs = *ParseCosts("f=1/2,b=4");
  const std::string before = costs.SerializeAsString();
  ScaleCosts(0.5, &costs);
  EXPECT_EQ(costs.SerializeAsString(), before);
}

TEST(ChunksTest, AScenarioWithoutChunksGetsLegalOnesForItsSchedule) {
  Scenario scenario = GivenCostsScenario();
  scenario.set_schedule("interleaved-1f1b");
  ASSERT_TRUE(FillChunks(&scenario).ok());
  EXPECT_EQ(scenario.parallelism().chunks(), 2u);
  EXPECT_EQ(ForwardSeconds(scenario), 0.5);
  // A second call changes nothing.
  ASSERT_TRUE(FillChunks(&scenario).ok());
  EXPECT_EQ(ForwardSeconds(scenario), 0.5);
}

TEST(ChunksTest, GivenChunksAreReplacedOnlyOnRequest) {
  Scenario scenario = GivenCostsScenario();
  scenario.mutable_parallelism()->set_chunks(2);
  ASSERT_TRUE(FillChunks(&scenario).ok());
  EXPECT_EQ(scenario.parallelism().chunks(), 2u);
  SetLegalChunks(Kind("1f1b"), &scenario);
  EXPECT_EQ(scenario.parallelism().chunks(), 1u);
  EXPECT_EQ(ForwardSeconds(scenario), 2);
}

TEST(ChunksTest, ALayoutOfLayersTakesPrecedenceOverTheSchedule) {
  Scenario scenario = Small();
  scenario.set_schedule("interleaved-1f1b");
  scenario.mutable_parallelism()->set_pipeline(2);
  scenario.mutable_parallelism()->set_layout("Et|tt|tt|tt|tt|tL");
  ASSERT_TRUE(FillChunks(&scenario).ok());
  EXPECT_EQ(scenario.parallelism().chunks(), 3u);
  // An invalid layout is reported where it is checked.
  scenario.mutable_parallelism()->clear_chunks();
  scenario.mutable_parallelism()->set_layout("?");
  ASSERT_TRUE(FillChunks(&scenario).ok());
  EXPECT_EQ(scenario.parallelism().chunks(), 2u);
}

TEST(ChunksTest, AScheduleFileHasItsOwn) {
  schedules::ScheduleSpec spec;
  spec.num_ranks = 2;
  spec.num_microbatches = 4;
  spec.num_chunks = 2;
  const auto schedule = schedules::GenerateSchedule("interleaved-1f1b", spec);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  const std::string path =
      absl::StrCat(testing::TempDir(), "chunks", getpid(), ".csv");
  ASSERT_TRUE(WriteFile(path, schedules::PrintCsv(*schedule)).ok());
  Scenario scenario = GivenCostsScenario();
  scenario.clear_parallelism();
  scenario.clear_num_microbatches();
  scenario.set_schedule(path);
  ASSERT_TRUE(FillChunks(&scenario).ok());
  EXPECT_EQ(scenario.parallelism().chunks(), 2u);
  EXPECT_EQ(ForwardSeconds(scenario), 0.5);
  scenario.clear_parallelism();
  scenario.set_schedule("./missing.csv");
  EXPECT_FALSE(FillChunks(&scenario).ok());
}

TEST(ChunksTest, ResolvedScenariosHaveLegalChunks) {
  Scenario scenario = Small();
  scenario.mutable_parallelism()->set_pipeline(2);  // 4 stages of 3 blocks
  scenario.set_schedule("interleaved-1f1b");
  auto resolved = ResolveScenario("s", scenario);
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_EQ(resolved->scenario.parallelism().chunks(), 2u);
  scenario.set_schedule("1f1b");
  ASSERT_TRUE(ResolveAgain(scenario, &*resolved).ok());
  EXPECT_EQ(resolved->scenario.parallelism().chunks(), 1u);
  scenario.set_schedule("zb-v");
  ASSERT_TRUE(ResolveAgain(scenario, &*resolved).ok());
  EXPECT_EQ(resolved->scenario.parallelism().chunks(), 2u);
}

}  // namespace weir::scenarios::chunks_test
