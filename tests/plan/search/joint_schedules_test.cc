// SPDX-License-Identifier: Apache-2.0
// The schedules that the joint search considers, counts and shows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "plan/search/joint_search.h"
#include "tests/plan/search/small_searches.h"

namespace weir::plan::joint_schedules_test {

// A plan for Megatron-LM is useless with an order that it does not support.
TEST(JointSearchTest, ConsidersTheSchedulesThatTheRuntimeExecutes) {
  PlanRequest request = SmallRequest(4, 4, 8);
  request.mutable_space()->add_microbatch_size(1);
  request.set_num_plans(20);
  const PlanReport report = Search(request);  // megatron-lm by default
  EXPECT_TRUE(report.schedules_of_runtime());
  EXPECT_THAT(report.schedules(),
              testing::ElementsAre("1f1b", "interleaved-1f1b"));
  ASSERT_GT(report.plans_size(), 0);
  for (const Plan& plan : report.plans()) {
    EXPECT_THAT(plan.scenario().schedule(),
                testing::AnyOf("1f1b", "interleaved-1f1b"));
    EXPECT_TRUE(plan.runtime_executes());
  }
  request.mutable_space()->set_any_runtime(true);
  EXPECT_GT(Search(request).schedules_size(), 20);
  request.mutable_space()->set_any_runtime(false);
  request.mutable_scenario()->set_runtime("none");
  EXPECT_GT(Search(request).schedules_size(), 20);
  request.mutable_scenario()->set_runtime("megatron-deepspeed");
  const PlanReport deepspeed = Search(request);
  EXPECT_THAT(deepspeed.schedules(), testing::ElementsAre("1f1b"));
}

// Chunks on one rank are useful with fully sharded weights, which are gathered
// chunk by chunk, but Megatron-LM interleaves only on two ranks or more.
TEST(JointSearchTest, PlansForMegatronDoNotInterleaveOnOneRank) {
  PlanRequest request = SmallRequest(4, 4, 8);
  Scenario& scenario = *request.mutable_scenario();
  scenario.mutable_transformer()->set_tied_embeddings(false);
  scenario.mutable_training()->set_precision(MIXED_BF16);
  scenario.mutable_training()->set_fully_sharded(true);
  request.set_num_plans(20);
  const auto num_interleaved_on_one_rank = [&request] {
    int count = 0;
    const PlanReport report = Search(request);
    EXPECT_GT(report.plans_size(), 0);
    for (const Plan& plan : report.plans()) {
      const Parallelism& parallelism = plan.scenario().parallelism();
      if (parallelism.pipeline() == 1 && parallelism.chunks() > 1) ++count;
      EXPECT_EQ(plan.runtime_executes(),
                parallelism.pipeline() > 1 || parallelism.chunks() == 1);
    }
    return count;
  };
  EXPECT_EQ(num_interleaved_on_one_rank(), 0);
  request.mutable_space()->add_schedules("1f1b");
  request.mutable_space()->add_schedules("interleaved-1f1b");
  EXPECT_EQ(num_interleaved_on_one_rank(), 0);
  request.mutable_space()->set_any_runtime(true);
  EXPECT_GT(num_interleaved_on_one_rank(), 0);
}

TEST(JointSearchTest, SaysThatTheRuntimeDoesNotInterleaveOnOneRank) {
  for (const bool blocking : {false, true}) {
    PlanRequest request = SmallRequest(8, 4, 8);
    if (blocking) {
      request.mutable_scenario()->mutable_communication()->set_transfers(
          BLOCKING);
    }
    request.mutable_space()->add_pipeline(blocking ? 2 : 1);
    request.mutable_space()->add_chunks(2);
    request.mutable_space()->add_chunks(3);
    const auto report = SearchPlans("test", request);
    EXPECT_TRUE(absl::IsFailedPrecondition(report.status()));
    EXPECT_THAT(
        std::string(report.status().message()),
        testing::HasSubstr(
            blocking ? "parallelism.pipeline is 2, expected at least 3"
                     : "parallelism.pipeline is 1, expected at least 2"));
  }
}

TEST(JointSearchTest, SchedulesThatAreNamedAreConsideredAndMarked) {
  PlanRequest request = SmallRequest(4, 4, 8);
  request.mutable_space()->add_pipeline(4);
  request.mutable_space()->add_schedules("zb-h1");
  request.mutable_space()->add_schedules("bapipe-as");  // equal to 1F1B
  request.set_num_plans(20);
  const PlanReport report = Search(request);
  for (const Plan& plan : report.plans()) {
    EXPECT_EQ(plan.runtime_executes(),
              plan.scenario().schedule() == "bapipe-as")
        << plan.scenario().schedule();
  }
}

// Fused attention keeps no scores that selective recomputation could drop.
TEST(JointSearchTest, EqualPlansAreShownOnce) {
  PlanRequest request = SmallRequest(4, 4, 8);
  request.mutable_scenario()->mutable_training()->set_flash_attention(true);
  request.mutable_space()->add_schedules("1f1b");
  request.mutable_space()->add_schedules("dapple-pa");
  request.mutable_space()->add_tensor(1);
  request.mutable_space()->add_pipeline(2);
  request.mutable_space()->add_chunks(1);
  request.mutable_space()->add_microbatch_size(1);
  request.mutable_space()->set_even_layers_only(true);
  request.set_num_plans(20);
  request.set_patience(0);
  const PlanReport report = Search(request);
  std::set<std::pair<double, double>> seen;
  bool merged = false;
  for (const Plan& plan : report.plans()) {
    EXPECT_TRUE(
        seen.emplace(plan.batch_seconds(), plan.peak_memory_bytes()).second)
        << plan.scenario().ShortDebugString();
    EXPECT_NE(plan.scenario().training().recompute(), RECOMPUTE_SELECTIVE);
    EXPECT_NE(plan.scenario().schedule(), "dapple-pa");  // without a limit
    merged |= !plan.equal_to().empty();
  }
  EXPECT_TRUE(merged);  // tp-dp-pp and tp-pp-dp on one switch
  EXPECT_EQ(SumOfCounts(report), report.num_candidates());
  // If scores are kept, selective recomputation is a different plan.
  request.mutable_scenario()->mutable_training()->set_flash_attention(false);
  bool selective = false;
  const PlanReport unfused = Search(request);
  for (const Plan& plan : unfused.plans()) {
    selective |= plan.scenario().training().recompute() == RECOMPUTE_SELECTIVE;
  }
  EXPECT_TRUE(selective);
}

// BaPipe's order on hardware with overlapped transfers is 1F1B and is reported
// as such.
TEST(JointSearchTest, AnOrderOfSeveralNamesHasTheFirst) {
  PlanRequest request = SmallRequest(6, 4, 8);
  request.mutable_space()->set_any_runtime(true);
  request.mutable_space()->add_tensor(1);
  request.mutable_space()->add_pipeline(4);
  request.mutable_space()->add_chunks(1);
  request.mutable_space()->add_microbatch_size(1);
  request.mutable_space()->add_recompute(RECOMPUTE_NONE);
  request.set_num_plans(30);
  std::vector<Plan> seeds;
  for (const char* name : {"bapipe-as", "dapple-pa", "pipedream-flush"}) {
    Plan& seed = seeds.emplace_back();
    seed.set_source("by hand");
    Scenario& scenario = *seed.mutable_scenario();
    scenario.mutable_parallelism()->set_pipeline(4);
    for (const uint32_t blocks : {1, 2, 1, 2}) {
      scenario.mutable_parallelism()->add_blocks_per_stage(blocks);
    }
    scenario.mutable_batch()->set_microbatch_size(1);
    scenario.set_schedule(name);
  }
  bool has_1f1b = false;
  const PlanReport report = Search(request, 2, seeds);
  for (const Plan& plan : report.plans()) {
    has_1f1b |= plan.scenario().schedule() == "1f1b";
    EXPECT_THAT(plan.scenario().schedule(),
                testing::Not(testing::AnyOf("bapipe-as", "dapple-pa",
                                            "bapipe-sno", "pipedream-flush")));
  }
  EXPECT_TRUE(has_1f1b);
}

// Pipelined backpropagation updates after every sample.
TEST(JointSearchTest, PipelinedBackpropHasMicrobatchesOfOneSample) {
  PlanRequest request = SmallRequest(4, 2, 8);
  request.mutable_space()->add_schedules("pipelined-backprop");
  request.mutable_space()->add_pipeline(2);
  request.set_num_plans(20);
  const PlanReport report = Search(request);
  ASSERT_GT(report.plans_size(), 0);
  for (const Plan& plan : report.plans()) {
    EXPECT_EQ(plan.scenario().batch().microbatch_size(), 1u);
  }
}

TEST(JointSearchTest, MarksSchedulesWithoutAFlush) {
  PlanRequest request = SmallRequest(4, 2, 8);
  request.mutable_space()->add_pipeline(2);
  request.mutable_space()->add_schedules("pipedream-2bw");
  const PlanReport report = Search(request);
  ASSERT_GT(report.plans_size(), 0);
  EXPECT_TRUE(report.plans(0).changes_training());
  request.mutable_space()->clear_schedules();
  request.mutable_space()->add_microbatch_size(1);
  const PlanReport usual = Search(request);
  for (const Plan& plan : usual.plans()) {
    EXPECT_FALSE(plan.changes_training()) << plan.scenario().schedule();
  }
}

// Chimera requires an even number of ranks. On three GPUs all of its candidates
// are invalid, including those that need too much memory or that are worse than
// other plans.
TEST(JointSearchTest, CountsAllThatAScheduleRefuses) {
  PlanRequest request = SmallRequest(6, 3, 12);
  // Model states per GPU are far larger on one rank than on three.
  request.mutable_scenario()->mutable_transformer()->set_hidden_size(4096);
  request.mutable_space()->add_tensor(1);
  request.mutable_space()->add_schedules("1f1b");
  request.set_objective(OBJECTIVE_MEMORY);
  const PlanReport plain = Search(request);
  ASSERT_GT(plain.plans_size(), 0);
  request.mutable_space()->add_schedules("chimera");
  const PlanReport large = Search(request);
  ASSERT_GT(large.num_candidates(), plain.num_candidates());
  const uint64_t expected =
      plain.num_invalid() + large.num_candidates() - plain.num_candidates();
  EXPECT_EQ(large.num_invalid(), expected);
  EXPECT_GT(large.num_pruned_time(), 0u);
  request.set_memory_limit_bytes(1.001 * plain.plans(0).peak_memory_bytes());
  const PlanReport small = Search(request);
  EXPECT_EQ(small.num_invalid(), expected);
  EXPECT_GT(small.num_pruned_memory(), 0u);
}

TEST(JointSearchTest, SaysWhyTheOthersLost) {
  PlanRequest request = SmallRequest(4, 2, 8);
  request.mutable_space()->add_schedules("1f1b");
  request.mutable_space()->add_pipeline(2);
  request.mutable_space()->add_microbatch_size(1);
  request.mutable_space()->add_microbatch_size(4);
  request.mutable_space()->set_even_layers_only(true);
  const PlanReport report = Search(request);
  ASSERT_GE(report.plans_size(), 2);
  EXPECT_EQ(report.plans(0).why_not_best(), "");
  EXPECT_NE(report.plans(1).why_not_best().find("slower"), std::string::npos)
      << report.plans(1).why_not_best();
}

}  // namespace weir::plan::joint_schedules_test
