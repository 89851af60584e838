// SPDX-License-Identifier: Apache-2.0
// Compares the search with simulations of every plan in its space.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "plan/search/best_first.h"
#include "plan/search/evaluate.h"
#include "plan/search/joint_search.h"
#include "plan/search/space.h"
#include "scenarios/scenario.h"
#include "schedules/options.h"
#include "schedules/registry.h"
#include "sim/simulate.h"
#include "tests/plan/search/small_searches.h"

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
      if (schedule.name == "interleaved-1f1b" && shape.pipeline == 1 &&
          space->base.runtime.name() == "megatron-lm") {
        continue;
      }
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

double First(Objective objective, const Tried& plan) {
  return ScoreOf(objective, plan.seconds, plan.bytes, plan.num_gpus, 0).first;
}

double First(Objective objective, const Plan& plan) {
  return ScoreOf(objective, plan.batch_seconds(), plan.peak_memory_bytes(),
                 static_cast<int>(plan.num_gpus()), plan.joules_per_step())
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
  ASSERT_GT(most, least);
  const double limit = (least + most) / 2;
  request.set_memory_margin(1 - limit / device);
  const PlanReport report = Search(request);
  EXPECT_NEAR(report.memory_limit_bytes() / limit, 1, 1e-9);
  ASSERT_GT(report.plans_size(), 0);
  for (const Plan& plan : report.plans()) {
    EXPECT_LE(plan.peak_memory_bytes(), limit);
  }
  // By default, so much that the interval of a peak fits.
  request.clear_memory_margin();
  const PlanReport usual = Search(request);
  EXPECT_GT(usual.memory_limit_bytes(), device * 0.75);
  EXPECT_LT(usual.memory_limit_bytes(), device * 0.95);
  for (const Plan& plan : usual.plans()) {
    EXPECT_GT(plan.peak_memory_bytes_high(), plan.peak_memory_bytes());
    EXPECT_LE(plan.peak_memory_bytes_high(), device * 1.001);
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
  // Only candidates whose bounds are below the seed's time are ranked.
  EXPECT_LE(seeded.num_ranked(), alone.num_ranked());
}

}  // namespace weir::plan::joint_test
