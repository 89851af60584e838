// SPDX-License-Identifier: Apache-2.0
// Compares the search with simulations of every plan in its space.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "plan/search/best_first.h"
#include "plan/search/evaluate.h"
#include "plan/search/joint_search.h"
#include "plan/search/space.h"
#include "scenarios/scenario.h"
#include "schedules/options.h"
#include "schedules/registry.h"
#include "sim/simulate.h"
#include "tests/plan/search/small_requests.h"

namespace weir::plan::joint_test {

constexpr uint32_t kNumRequests = 240;
constexpr uint32_t kNumLarger = 24;

struct Tried {
  double seconds = 0, bytes = 0;
  int num_gpus = 0;
  std::string text;
};

struct BruteForce {
  std::vector<Tried> plans;
  uint64_t num_candidates = 0;
  uint64_t num_refused = 0;  // by the generator of the order
};

// Simulates all plans. Shapes and their cuts are those of the search, but the
// legality of shapes and schedules is determined only by the scenario.
BruteForce TryAll(const PlanRequest& request) {
  BruteForce all;
  const auto space = MakeSpace("test", request);
  EXPECT_TRUE(space.ok()) << space.status();
  Evaluator evaluator(*space);
  for (size_t i = 0; i < space->shapes.size(); ++i) {
    SearchJob job;
    job.add_shapes(static_cast<uint32_t>(i));
    const SearchEstimate estimate = evaluator.Evaluate(job).estimates(0);
    if (estimate.absent()) continue;
    Shape shape = space->shapes[i];
    shape.blocks.assign(estimate.blocks().begin(), estimate.blocks().end());
    for (const PlannedSchedule& schedule : space->schedules_of(shape)) {
      ++all.num_candidates;
      const auto kind = schedules::FindScheduleKind(schedule.name);
      schedules::ScheduleSpec spec;
      spec.num_ranks = shape.pipeline;
      spec.num_chunks = shape.chunks;
      spec.num_microbatches =
          static_cast<int>(request.scenario().batch().global_batch_size()) /
          (shape.data * shape.microbatch_size);
      const auto full = schedules::WithOptionsOf(schedule.name, **kind, spec);
      all.num_refused += !full.ok() || !(*kind)->check(*full).ok();
      // Megatron-LM, the default runtime, aborts for these.
      if (schedule.name == "interleaved-1f1b" && shape.pipeline == 1) continue;
      const auto resolved = scenarios::ResolveScenario(
          "test", ScenarioOfShape(space->base.scenario, shape, schedule.name));
      if (!resolved.ok()) continue;
      const auto result = sim::Simulate(*resolved);
      if (!result.ok() || !result->fits_memory()) continue;
      all.plans.push_back({result->batch_seconds(), result->peak_memory_bytes(),
                           shape.num_gpus(),
                           DescribeShape(shape) + " " + schedule.name});
    }
  }
  return all;
}

uint64_t SumOfCounts(const PlanReport& report) {
  return report.num_invalid() + report.num_pruned_memory() +
         report.num_pruned_time() + report.num_ranked() +
         report.num_duplicates() + report.num_left();
}

PlanReport Search(const PlanRequest& request, int num_processes = 2,
                  std::vector<Plan> seeds = {}) {
  SearchOptions options;
  options.num_processes = num_processes;
  options.seeds = std::move(seeds);
  auto report = SearchPlans("test", request, options);
  EXPECT_TRUE(report.ok()) << report.status();
  return report.ok() ? *std::move(report) : PlanReport();
}

double First(Objective objective, const Tried& plan) {
  return ScoreOf(objective, plan.seconds, plan.bytes, plan.num_gpus).first;
}

double First(Objective objective, const Plan& plan) {
  return ScoreOf(objective, plan.batch_seconds(), plan.peak_memory_bytes(),
                 static_cast<int>(plan.num_gpus()))
      .first;
}

// Returns true if `plan` is at least as good as `than` in every objective and
// better in one by more than rounding error.
bool IsBetter(const Tried& plan, const Plan& than) {
  const auto less = [](double a, double b) { return a <= b * (1 + 1e-9); };
  const auto much_less = [](double a, double b) { return a < b * (1 - 1e-9); };
  const double cost = plan.seconds * plan.num_gpus;
  const double than_cost = than.batch_seconds() * than.num_gpus();
  return less(plan.seconds, than.batch_seconds()) &&
         less(plan.bytes, than.peak_memory_bytes()) && less(cost, than_cost) &&
         (much_less(plan.seconds, than.batch_seconds()) ||
          much_less(plan.bytes, than.peak_memory_bytes()) ||
          much_less(cost, than_cost));
}

void ExpectFront(const std::vector<Tried>& all, const PlanReport& report) {
  for (const Plan& plan : report.plans()) {
    for (const Tried& other : all) {
      EXPECT_FALSE(IsBetter(other, plan))
          << other.text << " is better than " << plan.scenario().schedule();
    }
  }
  for (const Tried& one : all) {
    const bool covered = std::any_of(
        report.plans().begin(), report.plans().end(), [&](const Plan& plan) {
          return plan.batch_seconds() <= one.seconds * (1 + 1e-9) &&
                 plan.peak_memory_bytes() <= one.bytes * (1 + 1e-9);
        });
    EXPECT_TRUE(covered) << one.text << " is not covered";
  }
}

// Sets a limit that half of all plans exceed.
void LimitMemory(const std::vector<Tried>& all, PlanRequest* request) {
  std::vector<double> bytes;
  for (const Tried& plan : all) bytes.push_back(plan.bytes);
  std::sort(bytes.begin(), bytes.end());
  request->set_memory_limit_bytes(bytes[bytes.size() / 2]);
}

class JointSearch : public testing::TestWithParam<uint32_t> {};

TEST_P(JointSearch, FindsWhatTryingAllPlansFinds) {
  PlanRequest request =
      RandomRequest(GetParam(), /*tiny=*/GetParam() >= kNumLarger);
  BruteForce all = TryAll(request);
  if (all.plans.empty()) {
    EXPECT_FALSE(SearchPlans("test", request, {.num_processes = 1}).ok());
    return;
  }
  if (GetParam() % 2 == 0) {
    LimitMemory(all.plans, &request);
    std::erase_if(all.plans, [&](const Tried& plan) {
      return plan.bytes > request.memory_limit_bytes();
    });
  }
  const PlanReport report = Search(request, 1 + GetParam() % 2);
  ASSERT_GT(report.plans_size(), 0) << request.DebugString();
  EXPECT_EQ(report.num_candidates(), all.num_candidates);
  EXPECT_EQ(SumOfCounts(report), report.num_candidates());
  EXPECT_GE(report.num_invalid(), all.num_refused);
  EXPECT_GE(report.num_simulated(), report.plans_size());
  if (request.objective() == OBJECTIVE_PARETO) {
    ExpectFront(all.plans, report);
  } else {
    const Tried best = *std::min_element(
        all.plans.begin(), all.plans.end(),
        [&](const Tried& a, const Tried& b) {
          return First(request.objective(), a) < First(request.objective(), b);
        });
    EXPECT_NEAR(First(request.objective(), report.plans(0)) /
                    First(request.objective(), best),
                1, 1e-9)
        << best.text << " is best, found "
        << report.plans(0).scenario().ShortDebugString();
  }
  for (const Tried& plan : all.plans) {
    EXPECT_GE(plan.seconds, report.lower_bound_seconds() * (1 - 1e-9));
  }
  for (const Plan& plan : report.plans()) {
    EXPECT_GT(plan.lower_bound_seconds(), 0);
    EXPECT_GE(plan.gap(), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Random, JointSearch, testing::Range(0u, kNumRequests));

TEST(JointSearchTest, OneProcessAndThreeFindTheSame) {
  for (const uint32_t seed : {3u, 5u, 14u}) {
    const PlanRequest request = RandomRequest(seed);
    const auto one = SearchPlans("test", request, {.num_processes = 1});
    const auto three = SearchPlans("test", request, {.num_processes = 3});
    ASSERT_EQ(one.status(), three.status());
    if (!one.ok()) continue;
    EXPECT_EQ(one->SerializeAsString(), three->SerializeAsString());
  }
}

TEST(JointSearchTest, IsNeverWorseThanASeed) {
  PlanRequest request = SmallRequest(4, 2, 4);
  request.mutable_space()->add_schedules("gpipe");
  request.mutable_space()->add_pipeline(2);
  request.mutable_space()->add_microbatch_size(4);
  request.set_num_plans(1);
  const PlanReport alone = Search(request);
  Plan seed;
  seed.set_source("by hand");
  Scenario& scenario = *seed.mutable_scenario();
  scenario.mutable_parallelism()->set_data(2);
  scenario.mutable_batch()->set_microbatch_size(2);
  scenario.set_schedule("1f1b");
  const PlanReport seeded = Search(request, 2, {seed});
  ASSERT_EQ(seeded.plans_size(), 1);
  EXPECT_EQ(seeded.num_candidates(), alone.num_candidates() + 1);
  EXPECT_EQ(seeded.plans(0).source(), "by hand");
  EXPECT_LT(seeded.plans(0).batch_seconds(), alone.plans(0).batch_seconds());
}

TEST(JointSearchTest, SeedsThatLoseCostNoPatience) {
  PlanRequest request = SmallRequest(4, 2, 8);
  request.mutable_space()->add_schedules("1f1b");
  request.mutable_space()->add_microbatch_size(1);
  request.set_num_plans(1);
  const PlanReport alone = Search(request);
  std::vector<Plan> seeds(40);
  for (size_t i = 0; i < seeds.size(); ++i) {
    Scenario& scenario = *seeds[i].mutable_scenario();
    scenario.mutable_parallelism()->set_pipeline(4);
    scenario.mutable_batch()->set_microbatch_size(8);
    scenario.mutable_training()->set_recompute(RECOMPUTE_FULL);
    scenario.set_schedule("gpipe");
    scenario.set_num_batches(static_cast<uint32_t>(i + 1));
  }
  request.set_patience(1);
  EXPECT_LE(Search(request, 2, seeds).plans(0).batch_seconds(),
            alone.plans(0).batch_seconds() * (1 + 1e-9));
}

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

TEST(JointSearchTest, LeavesTheMarginOfMemoryFree) {
  PlanRequest request = SmallRequest(4, 2, 8);
  request.mutable_space()->add_schedules("1f1b");
  request.mutable_scenario()->mutable_transformer()->set_hidden_size(8192);
  request.mutable_scenario()->mutable_transformer()->set_num_heads(64);
  request.set_num_plans(20);
  const PlanReport exact = Search(request);
  ASSERT_GT(exact.plans_size(), 0);
  const double device = exact.memory_limit_bytes();
  double least = device, most = 0;
  for (const Plan& plan : exact.plans()) {
    least = std::min(least, plan.peak_memory_bytes());
    most = std::max(most, plan.peak_memory_bytes());
  }
  ASSERT_GT(most, least * 1.01);
  const double limit = (least + most) / 2;
  request.set_memory_margin(1 - limit / device);
  const PlanReport report = Search(request);
  EXPECT_NEAR(report.memory_limit_bytes() / limit, 1, 1e-9);
  ASSERT_GT(report.plans_size(), 0);
  for (const Plan& plan : report.plans()) {
    EXPECT_LE(plan.peak_memory_bytes(), limit);
  }
  // Five percent by default.
  request.clear_memory_margin();
  EXPECT_NEAR(Search(request).memory_limit_bytes(), device * 0.95, 1);
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

// Returns a request in which eight GPUs share one adapter. Many layouts look
// equally good if each transfer is considered alone, or have similarly loose
// bounds.
PlanRequest SharedAdapters() {
  PlanRequest request = SmallRequest(8, 16, 32);
  request.mutable_scenario()->set_cluster("p3-16xlarge");
  request.mutable_scenario()->set_num_nodes(2);
  request.mutable_scenario()->mutable_transformer()->set_hidden_size(1024);
  PlanSpace& space = *request.mutable_space();
  for (const char* name : {"1f1b", "gpipe", "zb-h1", "zb-v", "chimera"}) {
    space.add_schedules(name);
  }
  space.add_tensor(1);
  space.add_microbatch_size(1);
  space.add_microbatch_size(2);
  space.add_chunks(1);
  space.add_chunks(2);
  space.add_recompute(RECOMPUTE_NONE);
  space.set_even_layers_only(true);
  request.set_num_plans(1);
  return request;
}

TEST(JointSearchTest, PatienceFindsTheBestWhereAdaptersAreShared) {
  PlanRequest request = SharedAdapters();
  request.set_patience(20);  // more than one round
  const BruteForce all = TryAll(request);
  const PlanReport report = Search(request);
  ASSERT_EQ(report.plans_size(), 1);
  double best = report.plans(0).batch_seconds();
  for (const Tried& plan : all.plans) best = std::min(best, plan.seconds);
  EXPECT_NEAR(report.plans(0).batch_seconds() / best, 1, 1e-9);
  EXPECT_LE(report.lower_bound_seconds(), best * (1 + 1e-9));
  EXPECT_EQ(SumOfCounts(report), report.num_candidates());
}

// A schedule that its generator refuses is invalid, even in a layout that does
// not fit in memory.
TEST(JointSearchTest, RefusedOrdersAreInvalidWhereverTheyAre) {
  PlanRequest request = SharedAdapters();
  const BruteForce all = TryAll(request);
  EXPECT_GT(all.num_refused, 100);
  request.set_memory_limit_bytes(
      std::min_element(
          all.plans.begin(), all.plans.end(),
          [](const Tried& a, const Tried& b) { return a.bytes < b.bytes; })
          ->bytes);
  const PlanReport report = Search(request);
  EXPECT_GT(report.num_pruned_memory(), 0);
  EXPECT_GE(report.num_invalid(), all.num_refused);
}

// A seed that is in the space under its own name is ranked first, and only
// once.
TEST(JointSearchTest, ASeedOfTheSpaceIsEstimatedFirst) {
  PlanRequest request = SharedAdapters();
  request.set_patience(0);
  const PlanReport alone = Search(request);
  ASSERT_EQ(alone.plans_size(), 1);
  const PlanReport seeded = Search(request, 2, {alone.plans(0)});
  EXPECT_EQ(seeded.num_candidates(), alone.num_candidates());
  EXPECT_EQ(SumOfCounts(seeded), seeded.num_candidates());
  EXPECT_EQ(seeded.plans(0).batch_seconds(), alone.plans(0).batch_seconds());
  // Plans within the seed's result are pruned before they are ranked.
  EXPECT_LT(seeded.num_ranked(), alone.num_ranked());
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

}  // namespace weir::plan::joint_test
