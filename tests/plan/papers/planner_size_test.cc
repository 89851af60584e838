// SPDX-License-Identifier: Apache-2.0
#include "plan/papers/planner_size.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/papers/pipedream.h"
#include "plan/papers/registry.h"
#include "plan/papers/run_planner.h"
#include "plan/search/plan_size.h"

namespace weir::plan::planner_size_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

Scenario Small() {
  Scenario scenario;
  scenario.set_model("gpt2");
  scenario.set_cluster("p3-16xlarge");
  scenario.set_num_nodes(1);
  scenario.mutable_batch()->set_global_batch_size(32);
  scenario.mutable_batch()->set_microbatch_size(2);
  return scenario;
}

TEST(PlannerSizeTest, IsThatOfTheQuestion) {
  const auto given = GivenForPlanners("test", Small());
  ASSERT_TRUE(given.ok()) << given.status();
  const PlannerSize size = PlannerSizeOf(*given);
  EXPECT_EQ(size.num_layers, 14);
  EXPECT_EQ(size.num_devices, 8);
  EXPECT_EQ(size.num_microbatches, 16);
}

TEST(PlannerSizeTest, NoPlannerNeedsLessForMore) {
  for (const PaperPlanner& planner : PaperPlanners()) {
    const SizeEstimate small = EstimatePlanner(planner.name, {14, 8, 16});
    for (const PlannerSize& more :
         {PlannerSize{28, 8, 16}, PlannerSize{14, 64, 16},
          PlannerSize{14, 8, 1e6}}) {
      const SizeEstimate large = EstimatePlanner(planner.name, more);
      EXPECT_GE(large.bytes, small.bytes) << planner.name;
      EXPECT_GE(large.seconds, small.seconds) << planner.name;
    }
  }
}

TEST(PlannerSizeTest, SppTakesNoLongerForAMillionMicrobatches) {
  EXPECT_EQ(EstimatePlanner("spp", {34, 64, 1e6}).seconds,
            EstimatePlanner("spp", {34, 64, 1e4}).seconds);
}

TEST(PlannerSizeTest, EveryPlannerIsRefusedWithAnEstimate) {
  const auto given = GivenForPlanners("test", Small());
  ASSERT_TRUE(given.ok()) << given.status();
  const ScopedSizeLimits limits({10, 1e-9});
  for (const PaperPlanner& planner : PaperPlanners()) {
    const auto answers = RunPlanners({&planner}, *given);
    ASSERT_TRUE(answers.ok()) << answers.status();
    EXPECT_THAT(
        answers->at(0).planned.message(),
        AllOf(HasSubstr(planner.name), HasSubstr("is too large: 14 layers"),
              HasSubstr("need about"), HasSubstr("--mbs")));
  }
}

TEST(PlannerSizeTest, PipeDreamsTablesAreEstimated) {
  PlannerWork work;
  for (int i = 0; i < 50; ++i) {
    PlannerLayer layer;
    layer.forward_seconds = layer.backward_seconds = 1;
    work.layers.push_back(layer);
  }
  const AntichainDag dag = AntichainDagOf(work);
  PipeDreamOptions options;
  options.num_machines = {4, 2};
  options.bytes_per_second = {1e9, 1e8};
  {
    const ScopedSizeLimits limits({1000, 1});
    EXPECT_THAT(OptimizePipeDream("g.txt", dag, options).status().message(),
                AllOf(HasSubstr("g.txt: is too large: 50 antichains"),
                      HasSubstr("KiB"), HasSubstr("fewer machines")));
  }
  double done = -1;
  bool ascends = true;
  options.num_machines = {4};
  options.bytes_per_second = {1e9};
  options.progress = [&](double part) {
    ascends &= part >= done && part <= 1;
    done = part;
  };
  EXPECT_TRUE(OptimizePipeDream("g.txt", dag, options).ok());
  EXPECT_TRUE(ascends);
  EXPECT_GT(done, 0);
}

TEST(PlanSizeTest, SearchesAreRefusedWithAnEstimate) {
  PlanRequest request;
  *request.mutable_scenario() = Small();
  EXPECT_TRUE(CheckSearchSize("test", request, 2).ok());
  // Enough for the order of one candidate.
  const ScopedSizeLimits limits({1e12, 1e-4});
  EXPECT_THAT(CheckSearchSize("test", request, 2).message(),
              AllOf(HasSubstr("test: is too large: "),
                    HasSubstr("candidates with up to"), HasSubstr("--gbs")));
}

TEST(PlanSizeTest, AMillionMicrobatchesArePlannedAndAHundredMillionAreNot) {
  PlanRequest request;
  *request.mutable_scenario() = Small();
  Batch& batch = *request.mutable_scenario()->mutable_batch();
  const ScopedSizeLimits limits({16e9, 3600});
  batch.set_global_batch_size(1'000'000);
  const auto space = MakeSpace("test", request);
  ASSERT_TRUE(space.ok()) << space.status();
  EXPECT_TRUE(CheckSearchSize("test", request, 2).ok());
  // Most candidates have fewer microbatches than the largest.
  EXPECT_LT(EstimateSearch(*space, 2).seconds, 100);
  batch.set_global_batch_size(100'000'000);
  EXPECT_THAT(CheckSearchSize("test", request, 2).message(),
              AllOf(HasSubstr("is too large: "), HasSubstr("need about")));
}

TEST(PlanSizeTest, GrowsWithTheMicrobatches) {
  PlanRequest request;
  *request.mutable_scenario() = Small();
  request.mutable_space()->add_microbatch_size(1);
  const auto small = MakeSpace("test", request);
  request.mutable_scenario()->mutable_batch()->set_global_batch_size(32000);
  const auto large = MakeSpace("test", request);
  ASSERT_TRUE(small.ok() && large.ok());
  EXPECT_GT(EstimateSearch(*large, 1).seconds,
            2 * EstimateSearch(*small, 1).seconds);
  EXPECT_GT(EstimateSearch(*large, 2).bytes, EstimateSearch(*large, 1).bytes);
}

}  // namespace weir::plan::planner_size_test
