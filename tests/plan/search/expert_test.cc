// SPDX-License-Identifier: Apache-2.0
// Tests the sizes of experts and groups of hybrid sharding as dimensions of the
// search.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "plan/search/joint_search.h"
#include "plan/search/plan_views.h"
#include "plan/search/space.h"
#include "sim/simulate.h"

namespace weir::plan::expert_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Eight experts on 16 H100, tensor-parallel in pairs.
PlanRequest Request() {
  PlanRequest request;
  Scenario& scenario = *request.mutable_scenario();
  Transformer& model = *scenario.mutable_transformer();
  model.set_num_layers(4);
  model.set_hidden_size(1024);
  model.set_num_heads(8);
  model.set_feed_forward_size(2048);
  model.set_vocabulary_size(8192);
  model.set_causal(true);
  model.set_num_experts(8);
  model.set_experts_per_token(2);
  model.set_expert_feed_forward_size(2048);
  scenario.set_cluster("dgx-h100");
  scenario.mutable_batch()->set_sequence_length(1024);
  scenario.mutable_batch()->set_global_batch_size(32);
  scenario.mutable_parallelism()->set_sequence_parallel(true);
  scenario.mutable_communication()->set_gradient_reduction(
      REDUCTION_OVERLAPPED);
  PlanSpace& space = *request.mutable_space();
  space.add_gpus(16);
  space.add_pipeline(1);
  space.add_tensor(4);
  space.add_context(1);
  space.add_microbatch_size(1);
  space.add_recompute(RECOMPUTE_NONE);
  space.add_orders("tp-dp-pp");
  space.add_schedules("1f1b");
  space.set_even_layers_only(true);
  space.add_sharding("optimizer");
  return request;
}

// Pairs of expert and expert tensor-parallel size.
std::set<std::pair<int, int>> SizesOf(const PlanRequest& request) {
  const auto space = MakeSpace("test", request);
  EXPECT_TRUE(space.ok()) << space.status();
  std::set<std::pair<int, int>> sizes;
  if (!space.ok()) return sizes;
  for (const Shape& shape : space->shapes) {
    sizes.insert({shape.expert, shape.expert_tensor});
  }
  return sizes;
}

TEST(ExpertPlanTest, ExpertsFillTheGpusOfARank) {
  PlanRequest request = Request();
  // Four replicas of four GPUs; 0 is the tensor-parallel size.
  EXPECT_EQ(SizesOf(request),
            (std::set<std::pair<int, int>>{
                {1, 0}, {2, 0}, {4, 0}, {1, 1}, {2, 1}, {4, 1}, {8, 1}}));
  request.mutable_space()->add_expert_tensor(2);
  EXPECT_EQ(SizesOf(request),
            (std::set<std::pair<int, int>>{{1, 2}, {2, 2}, {4, 2}, {8, 2}}));
  request.mutable_space()->clear_expert_tensor();
  request.mutable_scenario()->mutable_parallelism()->set_expert_tensor(4);
  EXPECT_EQ(SizesOf(request),
            (std::set<std::pair<int, int>>{{1, 0}, {2, 0}, {4, 0}}));
  request = Request();
  request.mutable_scenario()->mutable_transformer()->clear_num_experts();
  request.mutable_scenario()->mutable_transformer()->clear_experts_per_token();
  EXPECT_EQ(SizesOf(request), (std::set<std::pair<int, int>>{{1, 0}}));
}

TEST(ExpertPlanTest, GroupsOfShardsAreTriedIfListed) {
  PlanRequest request = Request();
  const auto groups_of = [](const PlanRequest& request) {
    const auto space = MakeSpace("test", request);
    EXPECT_TRUE(space.ok()) << space.status();
    std::set<int> groups;
    for (const Shape& shape : space->shapes) {
      groups.insert(shape.data_replicate);
    }
    return groups;
  };
  EXPECT_THAT(groups_of(request), ElementsAre(1));
  request.mutable_space()->add_data_replicate(1);
  request.mutable_space()->add_data_replicate(2);
  EXPECT_THAT(groups_of(request), ElementsAre(1, 2));
  const auto message = [](const PlanRequest& request) {
    return std::string(MakeSpace("test", request).status().message());
  };
  request.mutable_space()->add_data_replicate(3);
  EXPECT_THAT(message(request),
              HasSubstr("space.data_replicate is 3, expected a divisor of the "
                        "data-parallel size"));
  request.mutable_space()->clear_data_replicate();
  request.mutable_space()->set_sharding(0, "none");
  EXPECT_THAT(groups_of(request), ElementsAre(1));
  request.mutable_space()->add_data_replicate(2);
  EXPECT_THAT(message(request), HasSubstr("space.data_replicate is 2, expected "
                                          "1: no layout shards anything"));
}

TEST(ExpertPlanTest, ModelsWithoutExpertsRefuseExpertTensorSizes) {
  PlanRequest request = Request();
  request.mutable_scenario()->mutable_transformer()->clear_num_experts();
  request.mutable_scenario()->mutable_transformer()->clear_experts_per_token();
  request.mutable_space()->add_expert_tensor(1);
  EXPECT_TRUE(MakeSpace("test", request).ok());
  request.mutable_space()->set_expert_tensor(0, 2);
  EXPECT_THAT(std::string(MakeSpace("test", request).status().message()),
              HasSubstr("space.expert_tensor is 2, expected 1: the model has "
                        "no experts"));
}

// The best plan is the best of all that the space has.
TEST(ExpertPlanTest, FindsTheBestSizes) {
  PlanRequest request = Request();
  request.mutable_space()->add_data_replicate(1);
  request.mutable_space()->add_data_replicate(2);
  const auto space = MakeSpace("test", request);
  ASSERT_TRUE(space.ok()) << space.status();
  double best = std::numeric_limits<double>::infinity();
  int num_valid = 0;
  for (const Shape& shape : space->shapes) {
    const auto resolved = scenarios::ResolveScenario(
        "test", ScenarioOfShape(space->base.scenario, shape, "1f1b"));
    if (!resolved.ok()) continue;
    const auto result = sim::Simulate(*resolved);
    ASSERT_TRUE(result.ok()) << result.status();
    best = std::min(best, result->batch_seconds());
    ++num_valid;
  }
  EXPECT_GE(num_valid, 10);
  SearchOptions options;
  options.num_processes = 1;
  const auto report = SearchPlans("test", request, options);
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_GT(report->plans_size(), 0);
  EXPECT_NEAR(report->plans(0).batch_seconds(), best, 1e-9 * best);
}

TEST(ExpertPlanTest, TablesNameSizesThatDiffer) {
  PlanRequest request = Request();
  request.mutable_space()->add_expert_tensor(1);
  request.mutable_space()->add_data_replicate(2);
  SearchOptions options;
  options.num_processes = 1;
  const auto report = SearchPlans("test", request, options);
  ASSERT_TRUE(report.ok()) << report.status();
  for (const Plan& plan : report->plans()) {
    EXPECT_EQ(plan.scenario().parallelism().expert_tensor(), 1u);
    EXPECT_EQ(plan.scenario().parallelism().data_replicate(), 2u);
  }
  EXPECT_THAT(PlanTable(*report, false), HasSubstr("etp"));
  EXPECT_THAT(PlanCsv(*report), HasSubstr(",expert_tensor,data_replicate\n"));
  EXPECT_THAT(PlanCsv(*report), HasSubstr(",1,2\n"));
  request.mutable_space()->set_expert_tensor(0, 4);
  request.mutable_space()->set_data_replicate(0, 1);
  const auto other = SearchPlans("test", request, options);
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_THAT(PlanCsv(*other), Not(HasSubstr("expert_tensor")));
}

}  // namespace weir::plan::expert_test
