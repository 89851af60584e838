// SPDX-License-Identifier: Apache-2.0
// Compares MegatronObstacles with the rules of Megatron-LM itself.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "plan/frameworks/megatron_arguments.h"
#include "scenarios/scenario.h"
#include "tests/plan/frameworks/megatron_rules.h"
#include "tests/plan/frameworks/same_run.h"

namespace weir::plan::megatron_random_test {

constexpr uint32_t kNumScenarios = 4000;
constexpr uint32_t kNumGpus = 8;

TEST(MegatronRandomTest, ObstaclesAreWhatMegatronRefuses) {
  std::map<std::string, int> refused;  // number of scenarios refused, by rule
  int num_run = 0;
  for (uint32_t seed = 0; seed < kNumScenarios; ++seed) {
    const Scenario scenario = RandomRun(seed);
    const auto resolved = scenarios::ResolveScenario("test", scenario);
    if (!resolved.ok()) continue;
    const std::string args = MegatronArguments(*resolved);
    const std::vector<std::string> refusals =
        MegatronRefusals(ParseMegatronArgs(args), kNumGpus);
    const std::vector<std::string> obstacles = MegatronObstacles(*resolved);
    ASSERT_EQ(obstacles.empty(), refusals.empty())
        << "obstacles: " << absl::StrJoin(obstacles, "; ")
        << "\nMegatron-LM: " << absl::StrJoin(refusals, "; ") << "\n"
        << scenario.DebugString() << args;
    for (const std::string& rule : refusals) ++refused[rule];
    num_run += refusals.empty() ? 1 : 0;
  }
  EXPECT_GT(num_run, 100);
  for (const char* rule :
       {"interleaving needs 2 ranks, 3 without overlap",
        "FSDP2 goes with none of these", "the distributed optimizer is Adam",
        "FlashAttention takes 16 bits", "no fp16 with expert parallelism"}) {
    EXPECT_GT(refused[rule], 0) << rule;
  }
}

}  // namespace weir::plan::megatron_random_test
