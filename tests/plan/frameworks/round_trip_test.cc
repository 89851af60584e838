// SPDX-License-Identifier: Apache-2.0
// A file that weir writes for a framework describes the run that was simulated.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/assets.h"
#include "plan/frameworks/exported_run.h"
#include "sim/simulate.h"
#include "tests/plan/frameworks/same_run.h"

namespace weir::plan::round_trip_test {

constexpr Framework kFrameworks[] = {Framework::kMegatron,
                                     Framework::kTorchtitan, Framework::kNemo};

void ExpectSameTime(const scenarios::ResolvedScenario& found,
                    const scenarios::ResolvedScenario& expected) {
  const auto one = sim::Simulate(found);
  const auto other = sim::Simulate(expected);
  ASSERT_EQ(one.ok(), other.ok()) << one.status() << other.status();
  if (!one.ok()) return;
  EXPECT_EQ(one->batch_seconds(), other->batch_seconds());
  EXPECT_EQ(one->peak_memory_bytes(), other->peak_memory_bytes());
}

// Returns true if the framework can run it, and then compares.
bool CheckRoundTrip(Framework framework, const scenarios::ResolvedScenario& run,
                    bool simulate) {
  if (!ObstaclesOf(framework, run).empty()) {
    EXPECT_TRUE(
        absl::IsFailedPrecondition(ExportRun(framework, run, "run").status()));
    return false;
  }
  const auto read = ReadBack(framework, run);
  EXPECT_TRUE(read.ok()) << read.status();
  if (!read.ok()) return true;
  ExpectSameRun(*read, run);
  if (simulate) ExpectSameTime(*read, run);
  return true;
}

TEST(RoundTripTest, OfEveryPreset) {
  std::map<Framework, int> num_run;
  for (const std::string& name : ListAssets("scenarios/presets")) {
    auto scenario = scenarios::LoadScenario(name);
    ASSERT_TRUE(scenario.ok()) << scenario.status();
    // Its user names the GPU.
    if (name == "replay-gpu") scenario->set_profile("h100-sxm");
    const auto run = scenarios::ResolveScenario(name, *scenario);
    ASSERT_TRUE(run.ok()) << run.status();
    for (const Framework framework : kFrameworks) {
      SCOPED_TRACE(absl::StrCat(name, SuffixOf(framework)));
      num_run[framework] += CheckRoundTrip(framework, *run, true) ? 1 : 0;
    }
  }
  EXPECT_GE(num_run[Framework::kMegatron], 2);
  EXPECT_GE(num_run[Framework::kNemo], 1);
}

void CheckRandom(Framework framework, Scenario (*draw)(uint32_t),
                 uint32_t num_scenarios, int least) {
  constexpr int kSimulated = 40;  // the first of those that can run
  int num_run = 0;
  for (uint32_t seed = 0; seed < num_scenarios; ++seed) {
    const Scenario scenario = draw(seed);
    const auto run = scenarios::ResolveScenario("test", scenario);
    if (!run.ok()) continue;
    SCOPED_TRACE(absl::StrCat("seed ", seed, "\n", scenario.DebugString()));
    num_run += CheckRoundTrip(framework, *run, num_run < kSimulated) ? 1 : 0;
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GE(num_run, least);
}

TEST(RoundTripTest, OfRandomRunsInMegatron) {
  CheckRandom(Framework::kMegatron, RandomRun, 2000, 100);
}

TEST(RoundTripTest, OfRandomRunsInNemo) {
  CheckRandom(Framework::kNemo, RandomRun, 2000, 100);
}

TEST(RoundTripTest, OfRandomRunsInTorchtitan) {
  CheckRandom(Framework::kTorchtitan, RandomTorchtitanRun, 600, 100);
}

}  // namespace weir::plan::round_trip_test
