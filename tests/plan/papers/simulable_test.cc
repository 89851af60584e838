// SPDX-License-Identifier: Apache-2.0
#include "plan/papers/simulable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plan/papers/dapple.h"
#include "plan/papers/registry.h"
#include "plan/papers/spp.h"
#include "scenarios/scenario.h"
#include "tests/plan/papers/random_work.h"

namespace weir::plan::simulable_test {

using testing::HasSubstr;

TEST(SimulableTest, HasEqualReplicasAndSaysWhatUnlikeOnesWouldTake) {
  Random random(1);
  int num_unlike = 0;
  for (int i = 0; i < 100; ++i) {
    const PlannerWork work = RandomWork(Whole(4, 8, &random), 2, 2, &random);
    std::vector<int> order;
    for (const auto& [free, equal] :
         {std::pair(PlanDapple(work), SimulableDapple(work)),
          std::pair(PlanSpp(work), SimulableSpp(work, &order))}) {
      ASSERT_TRUE(free.ok() && equal.ok());
      for (const PlannedStage& stage : equal->stages) {
        EXPECT_EQ(stage.devices.size(), equal->stages[0].devices.size());
      }
      // SPP minimizes a workload first, so fewer choices may give a better
      // time.
      if (equal->algorithm == "dapple") {
        EXPECT_GE(equal->objective_seconds * (1 + 1e-12),
                  free->objective_seconds);
      }
      if (equal->objective_seconds == free->objective_seconds) continue;
      ++num_unlike;
      EXPECT_THAT(
          equal->notes.back(),
          HasSubstr("stages with different numbers of replicas would take"));
    }
  }
  EXPECT_GT(num_unlike, 10);
}

TEST(SimulableTest, LooksAtUnlikeStagesUpToSoManyDevicesTimesLayers) {
  Random random(5);
  for (const int num_layers : {kMostForUnlike / 64, kMostForUnlike / 64 + 1}) {
    const PlannerWork work = RandomWork(num_layers, 8, 8, &random);
    const auto plan = SimulableDapple(work);
    ASSERT_TRUE(plan.ok()) << plan.status();
    const std::vector<std::string> notes(plan->notes.begin(),
                                         plan->notes.end());
    const auto not_looked_at = testing::Contains(
        "stages with different numbers of replicas are not considered beyond "
        "8000 devices x layers");
    if (num_layers * 64 > kMostForUnlike) {
      EXPECT_THAT(notes, not_looked_at);
    } else {
      EXPECT_THAT(notes, testing::Not(not_looked_at));
    }
  }
}

Scenario GptOnEightGpus() {
  Scenario scenario;
  scenario.set_model("gpt2");
  scenario.set_cluster("dgx-a100");
  scenario.set_num_nodes(1);
  scenario.mutable_batch()->set_global_batch_size(8);
  scenario.mutable_batch()->set_microbatch_size(1);
  scenario.mutable_training()->set_precision(MIXED_FP16);
  scenario.set_schedule("1f1b");
  return scenario;
}

TEST(SimulableTest, AcceptSendsTheBitsThatTheScenarioSays) {
  Scenario scenario = GptOnEightGpus();
  const auto ratio = [&](uint32_t bits) {
    scenario.mutable_communication()->set_compressed_bits_per_element(bits);
    const auto given = scenarios::ResolveScenario("given", scenario);
    EXPECT_TRUE(given.ok()) << given.status();
    const auto options = AcceptOptionsOf(*given);
    EXPECT_TRUE(options.ok()) << options.status();
    EXPECT_GT(options->compress_bytes_per_second, 1e9);
    return options->compression_ratio;
  };
  EXPECT_DOUBLE_EQ(ratio(0), 0.5);  // 8 of 16
  EXPECT_DOUBLE_EQ(ratio(4), 0.25);
  EXPECT_DOUBLE_EQ(ratio(32), 1);
}

// Every registered planner is the one of its name: it plans the same scenario,
// and its objective is not below a bound that holds for what it minimizes.
TEST(PaperPlannersTest, EachPlansAllLayersAndKeepsItsBound) {
  std::vector<std::string> names;
  for (const PaperPlanner& planner : PaperPlanners()) {
    names.emplace_back(planner.name);
  }
  EXPECT_THAT(
      names, testing::ElementsAre("pipedream", "pipedream-2bw", "dapple", "spp",
                                  "bapipe", "dawnpiper", "accept", "edgepipe"));
  const auto given = scenarios::ResolveScenario("given", GptOnEightGpus());
  ASSERT_TRUE(given.ok()) << given.status();
  const auto work = PlannerWorkOf(*given);
  ASSERT_TRUE(work.ok()) << work.status();
  SharedFacts facts(*given);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const auto plan = (*FindPaperPlanner(name))->plan(*given, &facts);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->algorithm, name);
    const int num_used = ExpectValidStages(*work, plan->stages);
    EXPECT_LE(num_used, 8);
    // Inference needs no backward. The other objectives are at least the time
    // of a microbatch on as many devices as the plan uses.
    double seconds = 0;
    for (const PlannerLayer& layer : work->layers) {
      seconds += layer.forward_seconds +
                 (name == "edgepipe" ? 0 : layer.backward_seconds);
    }
    EXPECT_GE(plan->objective_seconds * (1 + 1e-9), seconds / num_used);
  }
}

}  // namespace weir::plan::simulable_test
