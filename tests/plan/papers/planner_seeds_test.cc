// SPDX-License-Identifier: Apache-2.0
// Starting points of the joint search.
#include "plan/papers/planner_seeds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <map>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "base/interrupt.h"
#include "plan/papers/run_planner.h"
#include "plan/search/joint_search.h"
#include "scenarios/scenario.h"
#include "sim/simulate.h"
#include "tests/plan/search/small_requests.h"

namespace weir::plan::planner_seeds_test {

PlanRequest NarrowRequest() {
  PlanRequest request = SmallRequest(/*num_layers=*/7, /*num_gpus=*/4,
                                     /*batch=*/8);
  request.mutable_space()->add_tensor(1);
  request.mutable_space()->add_recompute(RECOMPUTE_NONE);
  request.mutable_space()->add_microbatch_size(1);
  return request;
}

TEST(SeedsTest, AreWhatTheRequestAllows) {
  PlanRequest request = NarrowRequest();
  const std::vector<Plan> seeds =
      SeedsFor("test", request, {.num_processes = 2});
  ASSERT_FALSE(seeds.empty());
  for (const Plan& plan : seeds) {
    EXPECT_EQ(plan.num_gpus(), 4u) << plan.source();
    EXPECT_EQ(plan.scenario().batch().microbatch_size(), 1u) << plan.source();
    EXPECT_THAT(plan.source(), testing::AnyOf("dapple", "bapipe", "dawnpiper",
                                              "spp", "pipedream-2bw"));
  }
  request.mutable_space()->add_data(
      seeds[0].scenario().parallelism().data() == 1 ? 2 : 1);
  for (const Plan& plan : SeedsFor("test", request, {.num_processes = 2})) {
    EXPECT_NE(plan.scenario().parallelism().data(),
              seeds[0].scenario().parallelism().data());
  }
}

std::map<std::string, std::set<uint32_t>> SizesBySource(
    const PlanRequest& request) {
  std::map<std::string, std::set<uint32_t>> sizes;
  for (const Plan& plan : SeedsFor("test", request, {.num_processes = 2})) {
    sizes[plan.source()].insert(plan.scenario().batch().microbatch_size());
  }
  return sizes;
}

TEST(SeedsTest, AreOfEachMicrobatchSize) {
  PlanRequest request = NarrowRequest();
  for (uint32_t size : {2, 4}) {
    request.mutable_space()->add_microbatch_size(size);
  }
  const auto sizes = SizesBySource(request);
  for (const char* name : {"dapple", "bapipe", "dawnpiper", "spp"}) {
    ASSERT_TRUE(sizes.contains(name)) << name;
    EXPECT_THAT(sizes.at(name), testing::ElementsAre(1, 2, 4)) << name;
  }
}

// 3,360 has 25 divisors up to 64, the largest microbatch size considered.
TEST(SeedsTest, AreOfFewMicrobatchSizes) {
  PlanRequest request = NarrowRequest();
  request.mutable_scenario()->mutable_batch()->set_global_batch_size(3360);
  request.mutable_space()->clear_microbatch_size();
  for (const char* name : {"dapple", "bapipe", "dawnpiper", "spp"}) {
    EXPECT_THAT(SizesBySource(request)[name], testing::ElementsAre(1, 2, 4, 8))
        << name;
  }
  request.mutable_scenario()->mutable_batch()->set_microbatch_size(20);
  for (const char* name : {"dapple", "bapipe", "dawnpiper", "spp"}) {
    EXPECT_THAT(SizesBySource(request)[name],
                testing::IsSubsetOf({1, 2, 4, 20}))
        << name;
  }
  EXPECT_TRUE(SizesBySource(request)["dapple"].contains(20));
}

// SPP executes its plans, but only the beginning of such a large batch.
TEST(SeedsTest, AreOfSppForAMillionMicrobatches) {
  PlanRequest request = SmallRequest(32, 64, 1'000'000);
  request.mutable_scenario()->set_num_nodes(8);
  request.mutable_space()->add_tensor(1);
  request.mutable_space()->add_recompute(RECOMPUTE_NONE);
  request.mutable_space()->add_microbatch_size(1);
  EXPECT_THAT(SizesBySource(request)["spp"], testing::ElementsAre(1));
}

// 512 devices and 26 layers: all planners with a flush still give a seed.
TEST(SeedsTest, AreOfEveryPlannerInALargeCluster) {
  PlanRequest request = SmallRequest(24, 512, 1024);
  request.mutable_scenario()->set_num_nodes(64);
  request.mutable_space()->add_tensor(1);
  request.mutable_space()->add_recompute(RECOMPUTE_NONE);
  for (uint32_t size : {1, 2}) {
    request.mutable_space()->add_microbatch_size(size);
  }
  const auto sizes = SizesBySource(request);
  for (const char* name : {"dapple", "bapipe", "dawnpiper", "spp"}) {
    ASSERT_TRUE(sizes.contains(name)) << name;
    EXPECT_THAT(sizes.at(name), testing::ElementsAre(1, 2)) << name;
  }
}

// The planners of DAPPLE and DawnPiper are quadratic and cubic in the layers.
// Such a seed would cost more than the search itself.
TEST(SeedsTest, OfADeepModelComeFromPlannersThatAreFast) {
  PlanRequest request = SmallRequest(1200, 8, 8);
  request.mutable_space()->add_tensor(1);
  request.mutable_space()->add_recompute(RECOMPUTE_NONE);
  request.mutable_space()->add_microbatch_size(1);
  const auto sizes = SizesBySource(request);
  EXPECT_FALSE(sizes.contains("dapple"));
  EXPECT_FALSE(sizes.contains("dawnpiper"));
  EXPECT_TRUE(sizes.contains("bapipe"));
}

// With large batches, it takes minutes until the first candidate is ranked.
TEST(SeedsTest, AreTheAnswerOfASearchInterruptedBeforeItsFirstPlan) {
  const PlanRequest request = NarrowRequest();
  SearchOptions options;
  options.seeds = SeedsFor("test", request, {.num_processes = 1});
  ASSERT_FALSE(options.seeds.empty());
  NoteInterrupt();
  options.progress = [](const std::string& text) {
    if (!absl::StartsWith(text, "computing the costs") && !Interrupted()) {
      raise(SIGINT);
    }
  };
  const auto report = SearchPlans("test", request, options);
  ForgetInterrupt();
  ExitOnInterrupt();
  ASSERT_TRUE(report.ok()) << report.status();
  std::set<std::string> sources;
  for (const Plan& seed : options.seeds) sources.insert(seed.source());
  ASSERT_GT(report->plans_size(), 0);
  EXPECT_EQ(report->num_simulated(), options.seeds.size());
  double before = 0;  // the best comes first
  for (const Plan& plan : report->plans()) {
    EXPECT_TRUE(sources.contains(plan.source())) << plan.source();
    const auto resolved = scenarios::ResolveScenario("test", plan.scenario());
    ASSERT_TRUE(resolved.ok()) << resolved.status();
    const auto result = sim::Simulate(*resolved);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_NEAR(plan.batch_seconds(), result->batch_seconds(),
                1e-9 * result->batch_seconds());
    EXPECT_GE(plan.batch_seconds(), before);
    before = plan.batch_seconds();
  }
  EXPECT_THAT(
      report->warnings(),
      testing::Contains(testing::HasSubstr("no candidate was evaluated")));
}

TEST(SeedsTest, AreTheSameForAnyNumberOfProcesses) {
  const std::vector<Plan> one =
      SeedsFor("test", NarrowRequest(), {.num_processes = 1});
  const std::vector<Plan> three =
      SeedsFor("test", NarrowRequest(), {.num_processes = 3});
  ASSERT_EQ(one.size(), three.size());
  for (size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(one[i].SerializeAsString(), three[i].SerializeAsString());
  }
}

// A planner's stages are tried with an order that the runtime supports.
TEST(SeedsTest, HaveSchedulesThatTheRuntimeExecutes) {
  std::set<std::string> sources;
  for (const Plan& plan :
       SeedsFor("test", NarrowRequest(), {.num_processes = 2})) {
    EXPECT_EQ(plan.scenario().schedule(), "1f1b") << plan.source();
    sources.insert(plan.source());
  }
  EXPECT_THAT(sources, testing::IsSupersetOf({"dapple", "bapipe", "spp"}));
}

// A seed keeps its planner's schedule if the search may use that schedule.
TEST(SeedsTest, KeepThePlannersScheduleWhereItIsAllowed) {
  PlanRequest request = NarrowRequest();
  request.mutable_space()->set_any_runtime(true);
  std::map<std::string, std::string> schedules;
  for (const Plan& plan : SeedsFor("test", request, {.num_processes = 2})) {
    schedules[plan.source()] = plan.scenario().schedule();
  }
  EXPECT_THAT(schedules["dapple"], testing::StartsWith("dapple"));
  EXPECT_THAT(schedules["bapipe"], testing::StartsWith("bapipe"));
  EXPECT_EQ(schedules["spp"], "dapple-pb");  // not SPP's own order
}

TEST(SeedsTest, ASearchFromThemIsNeverWorseThanAPaper) {
  PlanRequest request = NarrowRequest();
  request.mutable_space()->set_asynchronous(true);
  request.mutable_space()->set_any_runtime(true);
  request.mutable_space()->clear_microbatch_size();
  request.mutable_space()->clear_recompute();
  Scenario scenario = request.scenario();
  scenario.mutable_batch()->set_microbatch_size(1);
  const auto given = GivenForPlanners("test", scenario, 4);
  ASSERT_TRUE(given.ok()) << given.status();
  SearchOptions options;
  options.num_processes = 2;
  options.seeds = SeedsFor("test", request, {.num_processes = 2});
  const auto report = SearchPlans("test", request, options);
  ASSERT_TRUE(report.ok()) << report.status();
  int num_papers = 0;
  const auto answers = RunPlanners(AllPaperPlanners(), *given);
  ASSERT_TRUE(answers.ok()) << answers.status();
  for (const PlannerResult& answer : *answers) {
    if (!answer.simulated.ok() || !answer.trains || !answer.fits_memory) {
      continue;
    }
    ++num_papers;
    EXPECT_LE(report->plans(0).batch_seconds(),
              answer.batch_seconds * (1 + 1e-9))
        << answer.algorithm;
  }
  EXPECT_GE(num_papers, 5);
}

TEST(SeedsTest, OnesThatTheSearchLooksAtAnywayAreNoCandidatesTwice) {
  PlanRequest request = SmallRequest(4, 2, 8);
  request.mutable_space()->add_pipeline(2);
  request.mutable_space()->add_schedules("1f1b");
  SearchOptions without;
  const auto plain = SearchPlans("test", request, without);
  ASSERT_TRUE(plain.ok()) << plain.status();
  SearchOptions with;
  // The search's own best plan, and the same with another cut.
  with.seeds = {plain->plans(0), plain->plans(0)};
  with.seeds[1].set_source("paper");
  Parallelism& parallelism =
      *with.seeds[1].mutable_scenario()->mutable_parallelism();
  parallelism.clear_layout();
  parallelism.clear_blocks_per_stage();
  parallelism.set_chunks(1);
  parallelism.add_blocks_per_stage(1);
  parallelism.add_blocks_per_stage(3);
  with.seeds[1].mutable_scenario()->set_schedule("1f1b");
  const auto report = SearchPlans("test", request, with);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_LE(report->num_candidates(), plain->num_candidates() + 1);
  EXPECT_EQ(report->plans(0).source(), "joint");
}

}  // namespace weir::plan::planner_seeds_test
