// SPDX-License-Identifier: Apache-2.0
#include "plan/replay/scenario_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "sim/simulate.h"

namespace weir::plan::scenario_plan_test {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

Scenario Asked(const std::string& schedule) {
  absl::StatusOr<Scenario> scenario = scenarios::LoadScenario("replay-cpu");
  EXPECT_TRUE(scenario.ok()) << scenario.status();
  scenario->set_schedule(schedule);
  return *std::move(scenario);
}

scenarios::ResolvedScenario Resolved(const Scenario& scenario) {
  auto resolved = scenarios::ResolveScenario("test", scenario);
  EXPECT_TRUE(resolved.ok()) << resolved.status();
  return *std::move(resolved);
}

calibrate::ExecutionPlan PlanOf(const scenarios::ResolvedScenario& scenario,
                                const ReplaySettings& settings = {}) {
  auto plan = PlanOfScenario(scenario, settings);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return *std::move(plan);
}

TEST(ScenarioPlanTest, LinksAreTheClusters) {
  const calibrate::ExecutionPlan plan = PlanOf(Resolved(Asked("1f1b")));
  EXPECT_NEAR(plan.link(0, 1).latency_seconds, 5e-6, 1e-15);
  // Transfers are whole numbers of bytes.
  EXPECT_NEAR(plan.link(0, 1).bytes_per_second / 50e9, 1, 1e-9);
  EXPECT_EQ(plan.link(2, 2).bytes_per_second, 0);
}

TEST(ScenarioPlanTest, AGpuGetsThePredictedPeaksOfItsRanks) {
  const scenarios::ResolvedScenario scenario = Resolved(Asked("gpipe"));
  EXPECT_TRUE(PlanOf(scenario).predicted_peak_bytes.empty());
  ReplaySettings settings;
  settings.on_gpu = true;
  const calibrate::ExecutionPlan plan = PlanOf(scenario, settings);
  const auto predicted = sim::Simulate(scenario);
  ASSERT_TRUE(predicted.ok()) << predicted.status();
  ASSERT_EQ(plan.predicted_peak_bytes.size(), 4);
  for (int rank = 0; rank < 4; ++rank) {
    double bytes = 0;
    for (const MemoryClass& memory :
         predicted->ranks(rank).peak_memory_classes()) {
      if (memory.name() != "reserved") bytes += memory.bytes();
    }
    EXPECT_NEAR(plan.predicted_peak_bytes[rank] / bytes, 1, 1e-9);
  }
}

TEST(ScenarioPlanTest, StagesAreCutAsTheSimulatorCutsThem) {
  Scenario scenario = Asked("1f1b");
  for (int blocks : {1, 2, 2, 3}) {
    scenario.mutable_parallelism()->add_blocks_per_stage(blocks);
  }
  EXPECT_THAT(PlanOf(Resolved(scenario)).first_layer,
              ElementsAre(0, 2, 4, 6, 10));
}

TEST(ScenarioPlanTest, WithoutFlushItHasTheBatchesOfTheSimulator) {
  const scenarios::ResolvedScenario scenario = Resolved(Asked("pipedream-2bw"));
  const auto predicted = sim::Simulate(scenario);
  ASSERT_TRUE(predicted.ok()) << predicted.status();
  EXPECT_EQ(PlanOf(scenario).schedule.num_batches,
            static_cast<int>(predicted->num_batches()));
  Scenario three = Asked("pipedream-2bw");
  three.set_num_batches(3);
  EXPECT_EQ(PlanOf(Resolved(three)).schedule.num_batches, 3);
}

TEST(ScenarioPlanTest, AnOrderedScheduleIsTheSimulatorsOwn) {
  const scenarios::ResolvedScenario scenario = Resolved(Asked("zb-1p"));
  const auto schedule = sim::ScheduleOfScenario(scenario, 1);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_EQ(PlanOf(scenario).schedule.rank_actions, schedule->rank_actions);
}

TEST(ScenarioPlanTest, EverythingThatReplaysDoNotDoIsNamedAtOnce) {
  Scenario scenario = Asked("1f1b");
  scenario.mutable_parallelism()->set_tensor(2);
  scenario.mutable_parallelism()->set_data(2);
  scenario.mutable_parallelism()->set_pipeline(2);
  scenario.mutable_training()->set_recompute(RECOMPUTE_FULL);
  scenario.mutable_communication()->set_transfers(BLOCKING);
  scenario.set_runtime("megatron-lm");
  scenario.mutable_training()->set_fp32_gradients(false);
  const auto plan = PlanOfScenario(Resolved(scenario), {});
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(
      std::string(plan.status().message()),
      AllOf(HasSubstr("parallelism.tensor is 2"), HasSubstr("--tp 1"),
            HasSubstr("parallelism.data is 2"), HasSubstr("training.recompute"),
            HasSubstr("training.fp32_gradients"),
            HasSubstr("communication.transfers"),
            HasSubstr("runtime is megatron-lm"), HasSubstr("--runtime weir")));
}

TEST(ScenarioPlanTest, KeptVersionsHaveTheWeightsFormat) {
  Scenario scenario = Asked("pipedream");
  scenario.mutable_training()->set_stash_bytes_per_parameter(4);
  const auto plan = PlanOfScenario(Resolved(scenario), {});
  EXPECT_THAT(std::string(plan.status().message()),
              HasSubstr("--stash-bytes-per-parameter 2"));
  // Without stashed versions the format does not matter.
  scenario.set_schedule("1f1b");
  EXPECT_TRUE(PlanOfScenario(Resolved(scenario), {}).ok());
}

TEST(ScenarioPlanTest, GpusComputeInSixteenBitsAndHaveOneRankAPart) {
  Scenario scenario = Asked("1f1b");
  scenario.mutable_training()->set_precision(FP32);
  ReplaySettings settings;
  EXPECT_TRUE(PlanOfScenario(Resolved(scenario), settings).ok());
  settings.on_gpu = true;
  settings.num_partitions = 2;
  EXPECT_THAT(
      std::string(
          PlanOfScenario(Resolved(scenario), settings).status().message()),
      AllOf(HasSubstr("training.precision is fp32"),
            HasSubstr("parallelism.pipeline is 4, but --partitions is 2")));
}

TEST(ScenarioPlanTest, GivenCostsTrainNothing) {
  Scenario scenario;
  GivenCosts::Stage* stage = scenario.mutable_costs()->add_stages();
  stage->set_forward_seconds(1);
  stage->set_backward_seconds(2);
  scenario.set_schedule("1f1b");
  scenario.mutable_parallelism()->set_pipeline(2);
  scenario.set_num_microbatches(4);
  EXPECT_THAT(
      std::string(PlanOfScenario(Resolved(scenario), {}).status().message()),
      HasSubstr("costs are given (--costs)"));
}

}  // namespace weir::plan::scenario_plan_test
