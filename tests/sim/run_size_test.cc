// SPDX-License-Identifier: Apache-2.0
// Checks that runs that are too large are refused before they are built, with
// an estimate.
#include "sim/run_size.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/rank.h"
#include "sim/simulate.h"
#include "tests/sim/textbook.h"

namespace weir {
namespace {

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
  const ResolvedScenario scenario = Resolve(Textbook());
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
  const ResolvedScenario scenario = Resolve(Textbook());
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
  const ResolvedScenario scenario = Resolve(Textbook());
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

TEST(RunSizeTest, FastRunsAreRefusedToo) {
  const ResolvedScenario scenario = Resolve(Textbook());
  Ranker ranker;
  {
    const ScopedSizeLimits limits({1000, 1});
    EXPECT_THAT(ranker.Rank(scenario).status().message(),
                HasSubstr("is too large"));
  }
  EXPECT_TRUE(ranker.Rank(scenario).ok());
}

TEST(RunSizeTest, RefusesMoreTasksThanHaveNumbers) {
  const ScopedSizeLimits limits({1e30, 1e30});
  const ResolvedScenario scenario = Resolve(Textbook());
  EXPECT_TRUE(CheckTasks(scenario, 3e8, 1).ok());
  EXPECT_THAT(CheckTasks(scenario, 3.1e8, 1).message(),
              HasSubstr("expected at most 3e+08 tasks"));
}

}  // namespace
}  // namespace weir
