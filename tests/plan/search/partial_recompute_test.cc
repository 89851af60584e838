// SPDX-License-Identifier: Apache-2.0
// Tests of recomputation of modules and of some layers as choices of the
// search.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "models/recompute.h"
#include "plan/search/joint_search.h"
#include "plan/search/plan_views.h"
#include "plan/search/space.h"
#include "scenarios/recomputation.h"

namespace weir::plan::partial_recompute_test {

using testing::ElementsAre;
using testing::HasSubstr;

// Llama 3.1 8B on 8 H100, in two pipeline ranks.
PlanRequest Request() {
  PlanRequest request;
  Scenario& scenario = *request.mutable_scenario();
  scenario.set_model("llama-3.1-8b");
  scenario.set_cluster("dgx-h100");
  scenario.set_num_nodes(1);
  scenario.mutable_batch()->set_global_batch_size(16);
  PlanSpace& space = *request.mutable_space();
  space.add_pipeline(2);
  space.add_tensor(2);
  space.add_microbatch_size(1);
  space.add_chunks(1);
  space.add_orders("tp-dp-pp");
  space.add_schedules("1f1b");
  space.add_sharding("optimizer");
  space.set_even_layers_only(true);
  return request;
}

Recomputation Half() {
  Recomputation half;
  half.set_mode(RECOMPUTE_FULL);
  half.set_method(RECOMPUTE_BLOCK);
  return half;
}

Recomputation Modules(RecomputeModule module) {
  Recomputation modules;
  modules.set_mode(RECOMPUTE_SELECTIVE);
  modules.add_modules(module);
  return modules;
}

std::set<std::string> RecomputesOf(const PlanRequest& request) {
  const auto space = MakeSpace("test", request);
  EXPECT_TRUE(space.ok()) << space.status();
  std::set<std::string> texts;
  if (!space.ok()) return texts;
  for (const Shape& shape : space->shapes) {
    texts.insert(models::RecomputeText(shape.recompute));
  }
  return texts;
}

PlanReport Search(const PlanRequest& request) {
  SearchOptions options;
  options.num_processes = 1;
  auto report = SearchPlans("test", request, options);
  EXPECT_TRUE(report.ok()) << report.status();
  return report.ok() ? *std::move(report) : PlanReport();
}

std::string RecomputeOf(const Plan& plan) {
  return models::RecomputeText(
      scenarios::RecomputeOf(plan.scenario().training()));
}

TEST(PartialRecomputeTest, OnlyListedChoicesAreAdded) {
  PlanRequest request = Request();
  EXPECT_THAT(RecomputesOf(request), ElementsAre("full", "none", "selective"));
  request.mutable_space()->add_recompute(RECOMPUTE_NONE);
  *request.mutable_space()->add_partial_recompute() = Half();
  *request.mutable_space()->add_partial_recompute() = Modules(MLP);
  // 32 blocks in 2 stages.
  EXPECT_THAT(RecomputesOf(request),
              ElementsAre("full:block=8", "none", "selective:mlp"));
}

// Between none and full in time and in memory, and the best plan if only none
// does not fit.
TEST(PartialRecomputeTest, HalfIsTheBestWhereNoneDoesNotFit) {
  const auto best = [](RecomputeMode mode, bool half) {
    PlanRequest request = Request();
    if (mode != RECOMPUTE_UNSPECIFIED) {
      request.mutable_space()->add_recompute(mode);
    }
    if (half) *request.mutable_space()->add_partial_recompute() = Half();
    request.set_memory_limit_bytes(1e12);
    const PlanReport report = Search(request);
    EXPECT_GT(report.plans_size(), 0);
    return report.plans_size() > 0 ? report.plans(0) : Plan();
  };
  const Plan none = best(RECOMPUTE_NONE, false);
  const Plan half = best(RECOMPUTE_UNSPECIFIED, true);
  const Plan full = best(RECOMPUTE_FULL, false);
  EXPECT_LT(none.batch_seconds(), half.batch_seconds());
  EXPECT_LT(half.batch_seconds(), full.batch_seconds());
  EXPECT_GT(none.peak_memory_bytes(), half.peak_memory_bytes());
  EXPECT_GT(half.peak_memory_bytes(), full.peak_memory_bytes());

  PlanRequest request = Request();
  request.mutable_space()->add_recompute(RECOMPUTE_NONE);
  request.mutable_space()->add_recompute(RECOMPUTE_FULL);
  *request.mutable_space()->add_partial_recompute() = Half();
  request.set_memory_limit_bytes(
      (none.peak_memory_bytes() + half.peak_memory_bytes()) / 2);
  const PlanReport report = Search(request);
  ASSERT_GT(report.plans_size(), 0);
  EXPECT_EQ(RecomputeOf(report.plans(0)), "full:block=8");
  EXPECT_DOUBLE_EQ(report.plans(0).batch_seconds(), half.batch_seconds());
  EXPECT_THAT(PlanCsv(report), HasSubstr(",full:block=8,"));
}

// All blocks of a stage are what full recomputation repeats.
TEST(PartialRecomputeTest, ChoicesWithoutADifferenceAreSkipped) {
  PlanRequest request = Request();
  request.mutable_space()->add_recompute(RECOMPUTE_FULL);
  Recomputation all = Half();
  all.set_num_layers(16);
  *request.mutable_space()->add_partial_recompute() = all;
  const PlanReport report = Search(request);
  ASSERT_GT(report.plans_size(), 0);
  for (const Plan& plan : report.plans()) EXPECT_EQ(RecomputeOf(plan), "full");
}

}  // namespace weir::plan::partial_recompute_test
