// SPDX-License-Identifier: Apache-2.0
#include "scenarios/sizes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scenarios/small_scenarios.h"

namespace weir::scenarios {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Two nodes of 8 GPUs.
Scenario Without(const std::string& parallelism) {
  return Parse(R"(
    model: "gpt2" cluster: "dgx-a100" num_nodes: 2
    batch { microbatch_size: 1 global_batch_size: 48 }
    parallelism { )" +
               parallelism + " }");
}

Parallelism ParallelismOf(const Scenario& scenario) {
  const auto resolved = ResolveScenario("s", scenario);
  EXPECT_TRUE(resolved.ok()) << resolved.status();
  return resolved.ok() ? resolved->scenario.parallelism() : Parallelism();
}

TEST(SizesTest, ReplicasUseAllGpus) {
  EXPECT_EQ(ParallelismOf(Without("pipeline: 4")).data(), 4);
  EXPECT_EQ(ParallelismOf(Without("pipeline: 2 tensor: 4")).data(), 2);
  EXPECT_EQ(ParallelismOf(Without("pipeline: 4 data: 1")).data(), 1);
  EXPECT_EQ(ParallelismOf(Without("pipeline: 2 gpus: [0, 4, 8, 12]")).data(),
            2);
}

TEST(SizesTest, ANumberOfGpusDeterminesReplicasAndNodes) {
  const auto eight = ResolveScenario("s", Without("pipeline: 4 num_gpus: 8"));
  ASSERT_TRUE(eight.ok()) << eight.status();
  EXPECT_EQ(eight->scenario.parallelism().data(), 2);
  EXPECT_EQ(eight->scenario.num_nodes(), 2);
  Scenario grown = Without("pipeline: 4 num_gpus: 64");
  grown.clear_num_nodes();
  const auto sixty_four = ResolveScenario("s", grown);
  ASSERT_TRUE(sixty_four.ok()) << sixty_four.status();
  EXPECT_EQ(sixty_four->scenario.parallelism().data(), 16);
  EXPECT_EQ(sixty_four->scenario.num_nodes(), 8);
  EXPECT_THAT(ProblemsOf(Without("pipeline: 4 data: 1 num_gpus: 8")),
              ElementsAre(StartsWith("s: parallelism.num_gpus is 8, expected "
                                     "parallelism.tensor 1 x "
                                     "parallelism.pipeline 4 x "
                                     "parallelism.data 1 = 4")));
}

TEST(SizesTest, ReplicasShareSequencesWithContextParallelism) {
  const auto resolved =
      ResolveScenario("s", Without("pipeline: 2 tensor: 2 context: 2"));
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_EQ(resolved->scenario.parallelism().data(), 2);
  EXPECT_EQ(resolved->scenario.parallelism().context_method(), CONTEXT_P2P);
  EXPECT_EQ(resolved->placement.data, 4);
  // Two sequences per microbatch of a replica, not four.
  EXPECT_EQ(resolved->num_microbatches, 24);
  EXPECT_THAT(
      ProblemsOf(Without("pipeline: 2 context: 2 data: 2 num_gpus: 16")),
      ElementsAre("s: parallelism.num_gpus is 16, expected parallelism.tensor "
                  "1 x parallelism.pipeline 2 x parallelism.context 2 x "
                  "parallelism.data 2 = 8; without parallelism.data it follows "
                  "from the GPUs"));
  EXPECT_THAT(ProblemsOf(Without("tensor: 2 context: 3")),
              Contains("s: parallelism.tensor 2 x parallelism.pipeline 1 x "
                       "parallelism.context 3 = 6, expected a divisor of the "
                       "cluster's 16 GPUs; nearest: parallelism.context 2, "
                       "parallelism.context 4, --gpus 12"));
  EXPECT_THAT(ProblemsOf(Without("tensor: 4 context: 4 data: 2")),
              ElementsAre(HasSubstr("x parallelism.data 2 x "
                                    "parallelism.context 4 needs 32 GPUs")));
}

TEST(SizesTest, SizesThatDoNotDivideAreToldWithTheNearest) {
  EXPECT_THAT(ProblemsOf(Without("pipeline: 3 tensor: 2")),
              ElementsAre("s: parallelism.tensor 2 x parallelism.pipeline 3 = "
                          "6, expected a divisor of the cluster's 16 GPUs; "
                          "nearest: parallelism.pipeline 2, "
                          "parallelism.pipeline 4, --gpus 12"));
  EXPECT_THAT(ProblemsOf(Without("tensor: 3")),
              ElementsAre(HasSubstr("nearest: parallelism.tensor 2, "
                                    "parallelism.tensor 4")));
  Scenario scenario = Without("pipeline: 4 tensor: 4 num_gpus: 24");
  scenario.clear_num_nodes();
  EXPECT_THAT(ProblemsOf(scenario),
              ElementsAre(HasSubstr("nearest: parallelism.pipeline 3, "
                                    "parallelism.pipeline 6, --gpus 16, "
                                    "--gpus 32")));
}

TEST(SizesTest, ReplicasOfAFileBelongToItsOtherSizes) {
  EXPECT_FALSE(SetsGroups(Parse("schedule: 'gpipe'")));
  EXPECT_FALSE(SetsGroups(Parse("parallelism { tensor: 2 data: 2 }")));
  for (const char* changes :
       {"parallelism { tensor: 2 }", "parallelism { pipeline: 2 }",
        "parallelism { num_gpus: 2 }", "num_nodes: 2"}) {
    EXPECT_TRUE(SetsGroups(Parse(changes))) << changes;
  }
  Scenario scenario = Without("pipeline: 4 data: 1");
  ClearReplicas(&scenario);
  EXPECT_EQ(scenario.parallelism().data(), 0);
  scenario.mutable_parallelism()->set_data(2);
  scenario.set_cluster("one-gpu");
  ClearReplicas(&scenario);
  EXPECT_EQ(scenario.parallelism().data(), 2);
}

TEST(SizesTest, TheUsualScheduleDependsOnTheChunks) {
  EXPECT_EQ(ResolveScenario("s", Without("pipeline: 2"))->scenario.schedule(),
            "1f1b");
  EXPECT_EQ(ResolveScenario("s", Without("pipeline: 2 chunks: 3"))
                ->scenario.schedule(),
            "interleaved-1f1b");
  EXPECT_EQ(ResolveScenario("s", Without("pipeline: 2 layout: "
                                         "\"Ettt|ttt|ttt|tttL\""))
                ->scenario.schedule(),
            "interleaved-1f1b");
}

TEST(SizesTest, AScheduleMayStateItsChunks) {
  Scenario scenario = Without("pipeline: 2 chunks: 2");
  scenario.set_schedule("interleaved-1f1b:v=3");
  const auto resolved = ResolveScenario("s", scenario);
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_EQ(resolved->scenario.schedule(), "interleaved-1f1b");
  EXPECT_EQ(resolved->scenario.parallelism().chunks(), 3);
  for (const char* name : {"interleaved-1f1b:v=x", "interleaved-1f1b:v=0",
                           "interleaved-1f1b:v=2:v=3"}) {
    scenario.set_schedule(name);
    EXPECT_THAT(MessageOf(scenario), HasSubstr("v is")) << name;
  }
}

TEST(SizesTest, CostsOfARankAreDividedAmongItsChunks) {
  Scenario scenario = Parse(R"(
    parallelism { pipeline: 2 } num_microbatches: 4
    schedule: "interleaved-1f1b:v=4"
    costs { stages { forward_seconds: 8 backward_seconds: 16 } })");
  const auto resolved = ResolveScenario("s", scenario);
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_EQ(resolved->scenario.costs().stages(0).forward_seconds(), 2);
  EXPECT_EQ(resolved->scenario.costs().stages(0).backward_seconds(), 4);
}

TEST(SizesTest, IdleGpusCauseAWarning) {
  const auto warning = [](const std::string& parallelism) {
    const auto resolved = ResolveScenario("s", Without(parallelism));
    EXPECT_TRUE(resolved.ok()) << resolved.status();
    return IdleWarning(resolved->scenario, resolved->cluster);
  };
  EXPECT_EQ(warning("pipeline: 4"), "");
  EXPECT_EQ(warning("pipeline: 4 data: 4"), "");
  EXPECT_EQ(
      warning("pipeline: 4 data: 1"),
      "12 of the cluster's 16 GPUs are idle: --dp 4 uses 16; use --gpus 4 "
      "to silence this warning");
  EXPECT_EQ(warning("pipeline: 4 num_gpus: 4"), "");
}

}  // namespace weir::scenarios
