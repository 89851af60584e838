// SPDX-License-Identifier: Apache-2.0
#include "plan/papers/planner_work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "scenarios/scenario.h"
#include "sim/costs/stage_costs.h"

namespace weir::plan::planner_work_test {

using testing::ElementsAre;
using testing::HasSubstr;

// Returns GPT-2.2B with 32 blocks on 2 servers with 8 GPUs.
scenarios::ResolvedScenario Given(int tensor = 1) {
  Scenario scenario = *scenarios::LoadScenario("pipedream-2bw-gpt-2.2b");
  scenario.set_num_nodes(2);
  scenario.set_schedule("1f1b");
  scenario.mutable_parallelism()->set_tensor(tensor);
  scenario.mutable_parallelism()->set_data(1);
  scenario.mutable_parallelism()->set_pipeline(1);
  const auto resolved = scenarios::ResolveScenario("given", scenario);
  EXPECT_TRUE(resolved.ok()) << resolved.status();
  return *resolved;
}

PlannedPipeline Pipeline(const std::vector<int>& ends,
                         const std::vector<std::vector<int>>& devices) {
  PlannedPipeline plan;
  int next = 0;
  for (size_t s = 0; s < ends.size(); ++s) {
    PlannedStage stage;
    stage.first_layer = next;
    stage.end_layer = next = ends[s];
    stage.devices = devices[s];
    plan.stages.push_back(stage);
  }
  return plan;
}

TEST(PlannerWorkTest, LayersAddUpToTheStagesThatTheSimulatorPrices) {
  const scenarios::ResolvedScenario given = Given();
  const auto work = PlannerWorkOf(given);
  ASSERT_TRUE(work.ok()) << work.status();
  ASSERT_EQ(work->layers.size(), 34u);
  EXPECT_FALSE(work->layers.front().is_block);
  EXPECT_TRUE(work->layers[1].is_block);
  EXPECT_FALSE(work->layers.back().is_block);
  const auto whole = sim::ComputeCosts(given, 1, {1});
  ASSERT_TRUE(whole.ok());
  double forward = 0, activations = 0, blocks_state = 0;
  for (const PlannerLayer& layer : work->layers) {
    forward += layer.forward_seconds;
    activations += layer.activation_bytes;
    if (layer.is_block) blocks_state += layer.state_bytes;
  }
  const sim::StageCosts& stage = whole->stages[0];
  // The host is never the bottleneck here.
  EXPECT_NEAR(forward, stage.seconds.forward, 1e-9 * forward);
  EXPECT_NEAR(activations, stage.activations.saved_bytes, 1e-9 * activations);
  EXPECT_LT(blocks_state, stage.parameters.weight_bytes +
                              stage.parameters.gradient_bytes +
                              stage.parameters.optimizer_state_bytes);
  EXPECT_EQ(work->num_microbatches, 64);
  EXPECT_EQ(work->microbatch_size, 8);
}

TEST(PlannerWorkTest, InputsAreWhatRecomputationKeeps) {
  scenarios::ResolvedScenario given = Given();
  const auto recomputed = PlannerWorkOf(given);
  given.scenario.mutable_training()->set_recompute(RECOMPUTE_NONE);
  const auto plain = PlannerWorkOf(given);
  for (int i : {1, 17, 32}) {
    EXPECT_EQ(plain->layers[i].input_bytes, recomputed->layers[i].input_bytes);
    EXPECT_EQ(recomputed->layers[i].activation_bytes,
              plain->layers[i].input_bytes);
    EXPECT_LT(plain->layers[i].input_bytes, plain->layers[i].activation_bytes);
    EXPECT_LT(plain->layers[i].backward_seconds,
              recomputed->layers[i].backward_seconds);
  }
}

TEST(PlannerWorkTest, DevicesAreTensorGroupsAndShareTheirNic) {
  const auto ones = PlannerWorkOf(Given());
  ASSERT_EQ(ones->devices.size(), 16u);
  EXPECT_EQ(ones->devices[7].server, 0);
  EXPECT_EQ(ones->devices[8].server, 1);
  EXPECT_DOUBLE_EQ(ones->devices[3].speed, 1);
  EXPECT_DOUBLE_EQ(ones->servers_bytes_per_second, 3.125e9);
  EXPECT_DOUBLE_EQ(ones->bytes_per_second[0][8], 3.125e9);
  EXPECT_DOUBLE_EQ(ones->bytes_per_second[0][3], 50e9);  // two NVLinks
  EXPECT_TRUE(std::isinf(ones->bytes_per_second[4][4]));
  const auto fours = PlannerWorkOf(Given(4));
  ASSERT_EQ(fours->devices.size(), 4u);
  EXPECT_DOUBLE_EQ(fours->bytes_per_second[0][2], 3.125e9 / 4);
  EXPECT_LT(fours->layers[5].parameter_bytes,
            0.3 * ones->layers[5].parameter_bytes);
}

TEST(ScenarioOfTest, EqualReplicasArePipelineAndData) {
  const scenarios::ResolvedScenario given = Given();
  PlannedPipeline plan = Pipeline(
      {10, 34}, {{0, 1, 2, 3, 4, 5, 6, 7}, {8, 9, 10, 11, 12, 13, 14, 15}});
  plan.schedule = "1f1b";
  plan.microbatch_size = 4;
  const auto scenario = ScenarioOf(plan, given);
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  const Parallelism& parallelism = scenario->parallelism();
  EXPECT_EQ(parallelism.pipeline(), 2u);
  EXPECT_EQ(parallelism.data(), 8u);
  EXPECT_EQ(parallelism.order(), "tp-dp-pp");
  EXPECT_THAT(parallelism.blocks_per_stage(), ElementsAre(9, 23));
  EXPECT_EQ(scenario->batch().microbatch_size(), 4u);
  EXPECT_EQ(scenario->training().recompute(), RECOMPUTE_FULL);
  EXPECT_TRUE(scenarios::ResolveScenario("planned", *scenario).ok());
  plan.chooses_recompute = true;
  EXPECT_EQ(ScenarioOf(plan, given)->training().recompute(), RECOMPUTE_NONE);
}

TEST(ScenarioOfTest, DevicesInAnyOrderAreListedWithTheirTensorGroups) {
  const scenarios::ResolvedScenario given = Given(2);
  const auto scenario = ScenarioOf(Pipeline({12, 34}, {{5, 1}, {0, 3}}), given);
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  EXPECT_THAT(scenario->parallelism().gpus(),
              ElementsAre(10, 11, 0, 1, 2, 3, 6, 7));
  EXPECT_TRUE(scenarios::ResolveScenario("planned", *scenario).ok());
}

TEST(ScenarioOfTest, UnlikeReplicasArePipeDreamsRoundRobin) {
  const scenarios::ResolvedScenario given = Given();
  PlannedPipeline plan = Pipeline({20, 34}, {{0, 1, 2}, {3}});
  plan.schedule = "pipedream";
  const auto scenario = ScenarioOf(plan, given);
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  EXPECT_EQ(scenario->schedule(), "pipedream:replicas=3-1");
  EXPECT_EQ(scenario->parallelism().pipeline(), 4u);
  EXPECT_EQ(scenario->parallelism().data(), 1u);
  const auto resolved = scenarios::ResolveScenario("planned", *scenario);
  EXPECT_TRUE(resolved.ok()) << resolved.status();
  plan.schedule = "1f1b";
  EXPECT_THAT(std::string(ScenarioOf(plan, given).status().message()),
              HasSubstr("different numbers of replicas, which only the "
                        "schedule pipedream supports, found 1f1b"));
}

TEST(ScenarioOfTest, SaysWhatTheSimulatorCannotRun) {
  const scenarios::ResolvedScenario given = Given();
  PlannedPipeline plan = Pipeline({1, 20, 33}, {{0}, {}, {2}});
  plan.stages[1].recompute = true;
  plan.stages[2].swap = true;
  const std::string message(ScenarioOf(plan, given).status().message());
  EXPECT_THAT(message,
              HasSubstr("stages[0] has no transformer block of the model"));
  EXPECT_THAT(message, HasSubstr("stages[1] has no device"));
  EXPECT_THAT(message,
              HasSubstr("stages[1] differs from stage 0 in recomputation"));
  EXPECT_THAT(message, HasSubstr("stages[2] swaps activations"));
  EXPECT_THAT(message, HasSubstr("stages end with layer 32, expected the "
                                 "model's 34 layers"));
  EXPECT_THAT(
      std::string(ScenarioOf(Pipeline({34}, {{16}}), given).status().message()),
      HasSubstr("device is 16, expected 0 to 15"));
}

TEST(PlannerWorkTest, CostsByHandHaveNoLayers) {
  scenarios::ResolvedScenario given = Given();
  given.given_costs = true;
  EXPECT_THAT(std::string(PlannerWorkOf(given).status().message()),
              HasSubstr("costs are given per stage"));
}

}  // namespace weir::plan::planner_work_test
