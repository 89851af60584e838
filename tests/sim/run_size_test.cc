// SPDX-License-Identifier: Apache-2.0
// Checks that runs that are too large are refused before they are built, with
// an estimate.
#include "sim/run_size.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/fast/fast_simulator.h"
#include "sim/simulate.h"
#include "tests/sim/by_costs.h"
#include "tests/sim/given_scenario.h"
#include "tests/sim/hand_schedules.h"

namespace weir::sim::run_size_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

// 4 stages x 8 microbatches: at least 32 forwards; 64 passes.
constexpr double kLeastTasks = 32, kGpus = 4;

TEST(RunSizeTest, GrowsWithTasksAndGpus) {
  const SizeEstimate one = EstimateRun(1e6, 10);
  const SizeEstimate more = EstimateRun(4e6, 40);
  EXPECT_DOUBLE_EQ(more.bytes, 4 * one.bytes);
  EXPECT_DOUBLE_EQ(more.seconds, 4 * one.seconds);
}

TEST(RunSizeTest, AcceptsAFullRunAtTheLimitAndRefusesItBelow) {
  const scenarios::ResolvedScenario scenario = Resolve(GivenScenario());
  SizeEstimate least = EstimateRun(kLeastTasks, kGpus);
  {
    const ScopedSizeLimits limits({least.bytes, least.seconds});
    EXPECT_TRUE(CheckFullRun(scenario, 1).ok());
    EXPECT_FALSE(CheckFullRun(scenario, 2).ok());
  }
  const ScopedSizeLimits limits({least.bytes - 1, least.seconds});
  EXPECT_FALSE(CheckFullRun(scenario, 1).ok());
}

TEST(RunSizeTest, SimulateRefusesWithCountsAnEstimateAndAdvice) {
  const scenarios::ResolvedScenario scenario = Resolve(GivenScenario());
  const ScopedSizeLimits limits({1000, 1});
  const absl::Status status = Simulate(scenario).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(
      status.message(),
      AllOf(HasSubstr("test: is too large: 4 stages x 8 microbatches x 1 "
                      "batches on 1 GPUs each, at least 32 tasks, need about "),
            HasSubstr("KiB"),
            HasSubstr("expected at most 1000 B and 1 s: fewer"),
            HasSubstr("--method fast")));
}

TEST(RunSizeTest, SimulateCountsTheTasksThatOnlyTheScheduleKnows) {
  const scenarios::ResolvedScenario scenario = Resolve(GivenScenario());
  const SizeEstimate passes = EstimateRun(64, kGpus);
  {
    // Enough for the forwards, not for the backwards.
    const ScopedSizeLimits limits({passes.bytes - 1, 1e9});
    EXPECT_TRUE(CheckFullRun(scenario, 1).ok());
    EXPECT_FALSE(Simulate(scenario).ok());
  }
  const ScopedSizeLimits limits({passes.bytes * 2, 1e9});
  EXPECT_TRUE(Simulate(scenario).ok());
}

// The first stage sends no gradients and the last stage no activations,
// regardless of their ranks. There are 4 passes on each of 2 ranks, and 2
// transfers in each direction.
TEST(RunSizeTest, TasksDoNotDependOnTheNumbersOfRanks) {
  const auto first = Actions({"0F0", "0F1", "0B0", "0B1"});
  const auto last = Actions({"1F0", "1B0", "1F1", "1B1"});
  Costs costs = OneStage(1, 2);
  costs.stages.resize(2, costs.stages[0]);
  const CostsRun forth(
      {.schedule = ByHand({{0, 1}}, 2, {first, last}), .costs = costs});
  const CostsRun back(
      {.schedule = ByHand({{1, 0}}, 2, {last, first}), .costs = costs});
  EXPECT_EQ(forth.graph().tasks.num_tasks(), back.graph().tasks.num_tasks());
  EXPECT_EQ(EstimateTasks(forth.inputs()), EstimateTasks(back.inputs()));
}

TEST(RunSizeTest, FastRunsAreRefusedToo) {
  const scenarios::ResolvedScenario scenario = Resolve(GivenScenario());
  FastSimulator ranker;
  {
    const ScopedSizeLimits limits({1000, 1});
    EXPECT_THAT(ranker.Estimate(scenario).status().message(),
                HasSubstr("is too large"));
  }
  EXPECT_TRUE(ranker.Estimate(scenario).ok());
}

TEST(RunSizeTest, RefusesMoreTasksThanHaveNumbers) {
  const ScopedSizeLimits limits({1e30, 1e30});
  const scenarios::ResolvedScenario scenario = Resolve(GivenScenario());
  EXPECT_TRUE(CheckTasks(scenario, 3e8, 1).ok());
  EXPECT_THAT(CheckTasks(scenario, 3.1e8, 1).message(),
              HasSubstr("expected at most 3e+08 tasks"));
}

}  // namespace weir::sim::run_size_test
