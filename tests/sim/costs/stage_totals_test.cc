// SPDX-License-Identifier: Apache-2.0
#include "sim/costs/stage_totals.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "models/recompute.h"
#include "scenarios/recomputation.h"
#include "scenarios/scenario.h"
#include "sim/costs/stage_costs.h"

namespace weir::sim::stage_totals_test {

struct Case {
  std::string model;
  int tensor = 1, data = 1, pipeline = 1, chunks = 1, expert = 1;
  RecomputeMode recompute = RECOMPUTE_NONE;
  bool sharded_optimizer = false;
  std::string layout = {};
};

Scenario ScenarioOf(const Case& c) {
  Scenario scenario;
  scenario.set_model(c.model);
  scenario.set_cluster("dgx-h100");
  scenario.set_num_nodes(8);
  Parallelism& parallelism = *scenario.mutable_parallelism();
  parallelism.set_tensor(c.tensor);
  parallelism.set_data(c.data);
  parallelism.set_pipeline(c.pipeline);
  parallelism.set_chunks(c.chunks);
  parallelism.set_expert(c.expert);
  parallelism.set_sequence_parallel(c.tensor > 1);
  parallelism.set_layout(c.layout);
  scenario.mutable_batch()->set_microbatch_size(1);
  scenario.mutable_batch()->set_global_batch_size(64);
  scenario.mutable_batch()->set_sequence_length(1024);
  scenario.mutable_training()->set_recompute(c.recompute);
  scenario.mutable_training()->set_distributed_optimizer(c.sharded_optimizer);
  scenario.set_schedule("breadth-first");
  return scenario;
}

scenarios::ResolvedScenario Resolved(const Scenario& scenario) {
  const auto resolved = scenarios::ResolveScenario("test", scenario);
  EXPECT_TRUE(resolved.ok()) << resolved.status();
  return resolved.value();
}

std::vector<StageTotals> FromCosts(const scenarios::ResolvedScenario& resolved,
                                   int num_stages) {
  const auto costs =
      ComputeCosts(resolved, num_stages, std::vector<int>(num_stages, 1));
  EXPECT_TRUE(costs.ok()) << costs.status();
  return TotalsOf(*costs);
}

// Layers priced for one cut have the totals of every other.
TEST(LayerTotalsTest, OfEveryCutEqualThoseOfCosts) {
  const std::string uneven = "Et*8|(t*8|)*6t*5mL";
  for (const std::vector<Case>& cuts : std::vector<std::vector<Case>>{
           {{.model = "llama-3.1-8b", .tensor = 2, .data = 32},
            {.model = "llama-3.1-8b", .tensor = 2, .data = 8, .pipeline = 4},
            {.model = "llama-3.1-8b",
            .tensor = 2,
            .data = 8,
            .pipeline = 4,
            .chunks = 4}},
           {{.model = "gpt2",
           .data = 64,
           .recompute = RECOMPUTE_FULL,
           .sharded_optimizer = true},
            {.model = "gpt2",
            .data = 16,
            .pipeline = 4,
            .recompute = RECOMPUTE_FULL,
            .sharded_optimizer = true}},
           {{.model = "qwen3-30b-a3b",
           .data = 64,
           .expert = 8,
           .recompute = RECOMPUTE_SELECTIVE,
           .sharded_optimizer = true},
            {.model = "qwen3-30b-a3b",
            .data = 16,
            .pipeline = 4,
            .chunks = 2,
            .expert = 8,
            .recompute = RECOMPUTE_SELECTIVE,
            .sharded_optimizer = true}},
           {{.model = "deepseek-v3",
           .data = 64,
           .expert = 8,
           .sharded_optimizer = true},
            {.model = "deepseek-v3",
            .data = 8,
            .pipeline = 8,
            .expert = 8,
            .sharded_optimizer = true,
            .layout = uneven}}}) {
    const auto layers = LayerTotals::Of(Resolved(ScenarioOf(cuts.front())));
    ASSERT_TRUE(layers.ok()) << layers.status();
    for (const Case& cut : cuts) {
      const scenarios::ResolvedScenario resolved = Resolved(ScenarioOf(cut));
      ASSERT_TRUE(LayerTotals::CanSum(resolved));
      const int num_stages = cut.pipeline * cut.chunks;
      const auto totals = layers->OfStages(resolved, num_stages);
      ASSERT_TRUE(totals.ok()) << totals.status();
      EXPECT_EQ(*totals, FromCosts(resolved, num_stages)) << cut.model;
      const auto costs =
          ComputeCosts(resolved, num_stages, std::vector<int>(num_stages, 1));
      EXPECT_EQ(layers->reserved_bytes(), ReservedBytesOf(*costs));
    }
  }
}

TEST(LayerTotalsTest, ReportTheErrorsOfCuts) {
  const Case whole = {.model = "gpt2", .data = 64};
  const scenarios::ResolvedScenario resolved = Resolved(ScenarioOf(whole));
  const auto layers = LayerTotals::Of(resolved);
  ASSERT_TRUE(layers.ok()) << layers.status();
  EXPECT_EQ(layers->OfStages(resolved, 5).status(),
            ComputeCosts(resolved, 5, {1, 1, 1, 1, 1}).status());
}

TEST(LayerTotalsTest, CannotSumWhatDependsOnTheStage) {
  const Scenario plain = ScenarioOf({.model = "gpt2", .data = 64});
  const auto can_sum = [](const Scenario& scenario) {
    return LayerTotals::CanSum(Resolved(scenario));
  };
  EXPECT_TRUE(can_sum(plain));
  Scenario sharded = plain;
  sharded.mutable_training()->set_fully_sharded(true);
  EXPECT_FALSE(can_sum(sharded));
  Scenario by_stage = plain;
  Recomputation blocks;
  blocks.set_mode(RECOMPUTE_FULL);
  blocks.set_method(RECOMPUTE_BLOCK);
  blocks.set_num_layers(2);
  scenarios::SetRecompute(models::Recompute(blocks),
                          by_stage.mutable_training());
  EXPECT_FALSE(can_sum(by_stage));
  Scenario adapted = plain;
  adapted.mutable_training()->mutable_lora()->set_rank(8);
  EXPECT_FALSE(can_sum(adapted));
  Scenario muon = plain;
  muon.mutable_training()->set_optimizer(MUON);
  EXPECT_FALSE(can_sum(muon));
}

// A forward bound takes the device with the fastest forward, even if another
// one is faster in total.
TEST(StageTotalsTest, TakeTheLeastOfEachDevice) {
  Costs costs;
  costs.stages.resize(1);
  costs.stages[0].seconds.forward = 1;
  costs.stages[0].seconds.backward = 5;
  costs.reserved_bytes = 7;
  DeviceCosts& other = costs.other_devices.emplace_back();
  other.stages.resize(1);
  other.stages[0].seconds.forward = 2;
  other.stages[0].seconds.backward = 3;
  other.reserved_bytes = 6;
  const std::vector<StageTotals> totals = TotalsOf(costs);
  ASSERT_EQ(totals.size(), 1u);
  EXPECT_EQ(totals[0].forward_seconds, 1);
  EXPECT_EQ(totals[0].seconds, 5);
  EXPECT_EQ(ReservedBytesOf(costs), 6);
}

}  // namespace weir::sim::stage_totals_test
