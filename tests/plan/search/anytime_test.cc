// SPDX-License-Identifier: Apache-2.0
// Searches that end early, their proofs, and the neighbors of the best plan.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "plan/search/joint_search.h"
#include "plan/search/plan_views.h"
#include "plan/search/space.h"
#include "scenarios/scenario.h"
#include "sim/simulate.h"
#include "tests/plan/search/small_searches.h"

namespace weir::plan::anytime_test {

using testing::HasSubstr;
using testing::StartsWith;
using testing::UnorderedElementsAre;

PlanRequest Request() {
  PlanRequest request = SmallRequest(6, 4, 16);
  request.mutable_space()->add_schedules("1f1b");
  request.mutable_space()->add_schedules("interleaved-1f1b");
  request.mutable_space()->add_microbatch_size(1);
  request.mutable_space()->add_microbatch_size(2);
  request.set_num_plans(1);
  return request;
}

TEST(AnytimeTest, ACompleteSearchProvesItsBestPlan) {
  const PlanReport report = Search(Request());
  EXPECT_EQ(report.end(), SEARCH_END_COMPLETE);
  EXPECT_NEAR(report.proven_seconds() / report.plans(0).batch_seconds(), 1,
              1e-9);
}

TEST(AnytimeTest, AGapEndsTheSearchEarlierAndIsKept) {
  PlanRequest request = Request();
  const PlanReport exact = Search(request);
  uint64_t num_ended = 0;
  for (const double gap : {0.02, 0.2, 0.9}) {
    request.set_gap(gap);
    const PlanReport report = Search(request);
    EXPECT_LE(report.num_ranked(), exact.num_ranked());
    EXPECT_EQ(SumOfCounts(report), report.num_candidates());
    const double best = exact.plans(0).batch_seconds();
    const double found = report.plans(0).batch_seconds();
    EXPECT_LE(best, found * (1 + 1e-9));
    EXPECT_GE(best, found * (1 - gap));
    EXPECT_GE(report.proven_seconds(), found * (1 - gap) * (1 - 1e-9));
    EXPECT_LE(report.proven_seconds(), best * (1 + 1e-9));
    if (report.end() != SEARCH_END_GAP) continue;
    ++num_ended;
    EXPECT_GT(report.num_left(), 0);
    EXPECT_THAT(PlanTable(report, false), HasSubstr("--gap"));
    EXPECT_THAT(PlanTable(report, false), HasSubstr("no candidate is faster"));
  }
  EXPECT_GT(num_ended, 0);
}

TEST(AnytimeTest, TheTimeLimitKeepsThePlansFoundBefore) {
  const PlanRequest request = Request();
  SearchOptions options;
  options.deadline = std::chrono::steady_clock::now();
  const auto nothing = SearchPlans("test", request, options);
  EXPECT_TRUE(absl::IsFailedPrecondition(nothing.status())) << nothing.status();
  options.seeds = {Search(request).plans(0)};
  const auto report = SearchPlans("test", request, options);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->end(), SEARCH_END_TIME_LIMIT);
  ASSERT_EQ(report->plans_size(), 1);
  EXPECT_GT(report->plans(0).batch_seconds(), 0);
}

// The first plan is known before seeds are looked for, which may take long.
TEST(AnytimeTest, AQuickSearchFindsAPlanFirst) {
  const PlanRequest request = Request();
  const PlanReport alone = Search(request);
  SearchOptions options;
  std::string first;
  options.find_seeds = [&](const std::string& best) {
    first = best;
    return std::vector<Plan>();
  };
  const auto report = SearchPlans("test", request, options);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(first, StartsWith("best "));
  EXPECT_THAT(first, HasSubstr(" pp "));
  EXPECT_EQ(report->num_candidates(), alone.num_candidates());
  EXPECT_EQ(report->plans(0).batch_seconds(), alone.plans(0).batch_seconds());
}

TEST(AnytimeTest, ReportsPlansThatAreBetterThanThoseBefore) {
  const PlanRequest request = Request();
  std::vector<Plan> found;
  SearchOptions options;
  options.find_seeds = [](const std::string&) { return std::vector<Plan>(); };
  options.improved = [&](const Plan& plan) { found.push_back(plan); };
  const auto report = SearchPlans("test", request, options);
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_FALSE(found.empty());
  for (size_t i = 1; i < found.size(); ++i) {
    EXPECT_LT(found[i].batch_seconds(), found[i - 1].batch_seconds());
  }
  const Plan& last = found.back();
  EXPECT_NEAR(last.batch_seconds() / report->plans(0).batch_seconds(), 1, 1e-9);
  EXPECT_NEAR(last.gap(), last.batch_seconds() / last.lower_bound_seconds() - 1,
              1e-12);
  const auto resolved = scenarios::ResolveScenario("test", last.scenario());
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  const auto result = sim::Simulate(*resolved);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_NEAR(result->batch_seconds() / last.batch_seconds(), 1, 1e-9);
}

// The search of a first plan reports, too.
TEST(AnytimeTest, ReportsNoPlanTwice) {
  PlanRequest request = Request();
  Scenario& base = *request.mutable_scenario();
  base.clear_transformer();
  base.set_model("llama-3.1-8b");
  base.set_cluster("dgx-h100");
  base.set_num_nodes(8);
  base.mutable_batch()->set_global_batch_size(256);
  request.mutable_space()->Clear();
  request.mutable_space()->add_schedules("1f1b");
  request.set_patience(0);
  std::vector<double> seconds;
  SearchOptions options;
  options.find_seeds = [](const std::string&) { return std::vector<Plan>(); };
  options.improved = [&](const Plan& plan) {
    seconds.push_back(plan.batch_seconds());
  };
  ASSERT_TRUE(SearchPlans("test", request, options).ok());
  ASSERT_GT(seconds.size(), 1u);
  for (size_t i = 1; i < seconds.size(); ++i) {
    EXPECT_LT(seconds[i], seconds[i - 1]);
  }
}

// Returns the choices in which plans differ, with sizes as one.
std::vector<std::string> Differences(const Scenario& a, const Scenario& b) {
  std::vector<std::string> names;
  const auto compare = [&](const char* name, auto ours, auto theirs) {
    if (ours != theirs) names.emplace_back(name);
  };
  const Parallelism& p = a.parallelism();
  const Parallelism& q = b.parallelism();
  compare("sizes", p.tensor(), q.tensor());
  compare("sizes", p.pipeline(), q.pipeline());
  compare("chunks", p.chunks() > 1 ? "vpp" : "1", q.chunks() > 1 ? "vpp" : "1");
  compare("mbs", a.batch().microbatch_size(), b.batch().microbatch_size());
  compare("recompute", a.training().recompute(), b.training().recompute());
  return names;
}

TEST(NeighborsTest, DifferInOneChoiceAndAreNotBetter) {
  PlanRequest request = Request();
  SearchOptions options;
  options.num_processes = 2;
  options.neighbors = true;
  const auto report = SearchPlans("test", request, options);
  ASSERT_TRUE(report.ok()) << report.status();
  const Plan& best = report->plans(0);
  std::set<std::string> choices;
  for (const PlanNeighbor& neighbor : report->neighbors()) {
    SCOPED_TRACE(neighbor.choice());
    EXPECT_TRUE(choices.insert(neighbor.choice()).second);
    const std::vector<std::string> differences =
        Differences(best.scenario(), neighbor.scenario());
    // A pipeline of one rank has no chunks.
    EXPECT_LE(differences.size(),
              neighbor.scenario().parallelism().pipeline() == 1 ? 2u : 1u);
    ASSERT_TRUE(neighbor.fits());
    EXPECT_GE(neighbor.batch_seconds(), best.batch_seconds() * (1 - 1e-9));
    EXPECT_THAT(neighbor.difference(),
                testing::AnyOf(HasSubstr("slower"), HasSubstr("as fast")));
    const auto resolved =
        scenarios::ResolveScenario("test", neighbor.scenario());
    ASSERT_TRUE(resolved.ok()) << resolved.status();
    const auto result = sim::Simulate(*resolved);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->batch_seconds(), neighbor.batch_seconds());
    EXPECT_EQ(result->peak_memory_bytes(), neighbor.peak_memory_bytes());
  }
  EXPECT_TRUE(choices.contains("recompute full"));
  EXPECT_GE(choices.size(), 4u);
  EXPECT_THAT(PlanTable(*report, false),
              HasSubstr("plans that differ from plan 1 in one choice"));
}

TEST(NeighborsTest, ThoseThatDoNotFitSaySo) {
  PlanRequest request = Request();
  request.mutable_scenario()->mutable_transformer()->set_hidden_size(2048);
  request.mutable_space()->add_sharding("none");
  request.mutable_space()->add_sharding("optimizer");
  request.mutable_space()->add_pipeline(1);
  request.mutable_space()->add_pipeline(2);
  request.mutable_space()->add_tensor(1);
  SearchOptions options;
  options.neighbors = true;
  PlanRequest smallest = request;
  smallest.set_objective(OBJECTIVE_MEMORY);
  request.set_memory_limit_bytes(Search(smallest).plans(0).peak_memory_bytes() *
                                 1.001);
  const auto report = SearchPlans("test", request, options);
  ASSERT_TRUE(report.ok()) << report.status();
  int num_too_large = 0;
  for (const PlanNeighbor& neighbor : report->neighbors()) {
    if (neighbor.fits()) continue;
    ++num_too_large;
    EXPECT_THAT(neighbor.difference(), StartsWith("exceeds the memory by "));
    EXPECT_GT(neighbor.peak_memory_bytes(), report->memory_limit_bytes());
  }
  EXPECT_GT(num_too_large, 0);
}

std::set<std::string> Shardings(const PlanRequest& request) {
  std::set<std::string> names;
  const auto space = MakeSpace("test", request);
  EXPECT_TRUE(space.ok()) << space.status();
  for (const Shape& shape : space->shapes) {
    if (shape.data > 1 && shape.pipeline > 1) {
      names.insert(NameOf(shape.sharding));
    }
  }
  return names;
}

TEST(SpaceTest, SearchesShardingsOfTheRuntime) {
  PlanRequest request = Request();
  EXPECT_THAT(Shardings(request), UnorderedElementsAre("none", "optimizer"));
  request.mutable_scenario()->set_runtime("torchtitan");
  EXPECT_THAT(Shardings(request),
              UnorderedElementsAre("none", "optimizer", "full"));
  request.mutable_scenario()->mutable_training()->set_distributed_optimizer(
      true);
  EXPECT_THAT(Shardings(request), UnorderedElementsAre("optimizer"));
  request.mutable_space()->add_sharding("full");
  EXPECT_THAT(Shardings(request), UnorderedElementsAre("full"));
}

TEST(SpaceTest, MegatronShardsFullyOnOnePipelineRank) {
  PlanRequest request = Request();
  Scenario& scenario = *request.mutable_scenario();
  scenario.mutable_training()->set_precision(MIXED_BF16);
  const auto num_full = [&] {
    const auto space = MakeSpace("test", request);
    EXPECT_TRUE(space.ok()) << space.status();
    int count = 0;
    for (const Shape& shape : space->shapes) {
      if (shape.sharding != Sharding::kFull) continue;
      ++count;
      EXPECT_EQ(shape.pipeline, 1);
    }
    return count;
  };
  EXPECT_EQ(num_full(), 0);  // tied embeddings
  scenario.mutable_transformer()->set_tied_embeddings(false);
  EXPECT_GT(num_full(), 0);
  scenario.set_runtime("megatron-lm-2022");
  EXPECT_EQ(num_full(), 0);
}

TEST(SpaceTest, GivenModesAreKept) {
  PlanRequest request = Request();
  const auto modes = [&] {
    const auto space = MakeSpace("test", request);
    EXPECT_TRUE(space.ok()) << space.status();
    std::set<std::pair<bool, ReductionMode>> found;
    for (const Shape& shape : space->shapes) {
      if (shape.tensor > 1 && shape.data > 1) {
        found.insert({shape.sequence_parallel, shape.reduction});
      }
    }
    return found;
  };
  EXPECT_EQ(modes().size(), 4u);
  request.mutable_scenario()->mutable_communication()->set_gradient_reduction(
      REDUCTION_OVERLAPPED);
  EXPECT_EQ(modes().size(), 2u);
  request.mutable_scenario()->mutable_parallelism()->set_sequence_parallel(
      true);
  EXPECT_THAT(modes(),
              UnorderedElementsAre(std::make_pair(true, REDUCTION_OVERLAPPED)));
}

}  // namespace weir::plan::anytime_test
