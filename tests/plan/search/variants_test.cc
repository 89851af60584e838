// SPDX-License-Identifier: Apache-2.0
// Compares searches of variants with simulations of every variant of every
// shape.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "plan/search/evaluate.h"
#include "plan/search/plan_views.h"
#include "plan/search/space.h"
#include "scenarios/scenario.h"
#include "sim/simulate.h"
#include "tests/plan/search/small_searches.h"

namespace weir::plan::variants_test {

using testing::HasSubstr;
using testing::Not;

// Returns a request with few shapes, whose variants are all open.
PlanRequest Open(uint32_t seed) {
  std::mt19937 random(seed);
  PlanRequest request =
      SmallRequest(OneOf<int>({4, 8}, random), OneOf<int>({2, 4}, random),
                   OneOf<int>({4, 8}, random));
  Transformer& model = *request.mutable_scenario()->mutable_transformer();
  if (seed % 2 == 1) {
    model.set_num_experts(4);
    model.set_experts_per_token(2);
    model.set_expert_feed_forward_size(1024);
    model.set_gated_feed_forward(true);
  }
  PlanSpace& space = *request.mutable_space();
  space.add_schedules("1f1b");
  if (random() % 2 == 0) space.add_schedules("interleaved-1f1b");
  space.add_tensor(OneOf<uint32_t>({1, 2}, random));
  space.add_microbatch_size(1);
  space.add_chunks(1);
  space.add_chunks(2);
  space.add_orders("tp-dp-pp");
  space.set_even_layers_only(true);
  space.add_sharding(OneOf<std::string>({"none", "optimizer"}, random));
  request.mutable_scenario()->mutable_communication()->set_gradient_reduction(
      REDUCTION_BLOCKING);
  request.set_num_plans(1);
  return request;
}

// Returns a file of Megatron-LM with the optimizer on the host among the
// options of plans; weir does not write the arguments that it needs.
std::string WithOptimizerOffload() {
  std::string file = testing::TempDir() + "offloading.textproto";
  std::ofstream(file) << "name: 'offloading' base: 'megatron-lm' "
                         "planned_options: 'optimizer-cpu-offload'";
  return file;
}

struct Simulated {
  double seconds = 0, bytes = 0;
  bool is_variant = false;
  std::string text;
};

std::vector<Simulated> SimulateAll(const PlanRequest& request) {
  std::vector<Simulated> all;
  const auto space = MakeSpace("test", request);
  EXPECT_TRUE(space.ok()) << space.status();
  if (!space.ok()) return all;
  Evaluator evaluator(*space);
  const auto num_shapes = static_cast<int>(space->shapes.size());
  for (size_t v = 0; v < space->variants.size(); ++v) {
    for (int i = 0; i < num_shapes; ++i) {
      const auto variant = static_cast<int>(v);
      if (!space->Has(i, variant)) continue;
      const int index = space->IndexOf(i, variant);
      SearchJob job;
      job.add_shapes(static_cast<uint32_t>(index));
      const SearchEstimate estimate = evaluator.Evaluate(job).estimates(0);
      if (estimate.absent() || !estimate.problem().empty()) continue;
      Shape shape = space->At(index);
      shape.blocks.assign(estimate.blocks().begin(), estimate.blocks().end());
      for (const PlannedSchedule& schedule : space->schedules_of(shape)) {
        if (!Interleaves(schedule, shape)) continue;
        const auto resolved = scenarios::ResolveScenario(
            "test",
            ScenarioOfShape(space->base.scenario, shape, schedule.name));
        if (!resolved.ok()) continue;
        const auto result = sim::Simulate(*resolved);
        if (!result.ok() || !result->fits_memory()) continue;
        EXPECT_LE(estimate.seconds(), result->batch_seconds() * (1 + 1e-9));
        EXPECT_LE(estimate.bytes(), result->peak_memory_bytes() * (1 + 1e-9));
        all.push_back({result->batch_seconds(), result->peak_memory_bytes(),
                       variant > 0,
                       DescribeShape(shape) + " " + schedule.name});
      }
    }
  }
  return all;
}

double Best(const std::vector<Simulated>& all, double limit,
            bool variants = true) {
  double best = std::numeric_limits<double>::infinity();
  for (const Simulated& one : all) {
    if (one.bytes > limit || (one.is_variant && !variants)) continue;
    best = std::min(best, one.seconds);
  }
  return best;
}

std::string FastestText(const std::vector<Simulated>& all, double limit) {
  for (const Simulated& one : all) {
    if (one.bytes <= limit && one.seconds == Best(all, limit)) return one.text;
  }
  return "";
}

class VariantSearch : public testing::TestWithParam<uint32_t> {};

// At limits from the smallest plan to one that all fit.
TEST_P(VariantSearch, FindsTheBestOfAllVariants) {
  PlanRequest request = Open(GetParam());
  const std::vector<Simulated> all = SimulateAll(request);
  ASSERT_FALSE(all.empty());
  std::set<double> bytes;
  for (const Simulated& one : all) bytes.insert(one.bytes);
  const std::vector<double> sorted(bytes.begin(), bytes.end());
  for (const double part : {0.0, 0.1, 0.3, 0.6, 1.0}) {
    const double limit =
        sorted[static_cast<size_t>(part * double(sorted.size() - 1))] *
        (1 + 1e-9);
    request.set_memory_limit_bytes(limit);
    const PlanReport report = Search(request);
    ASSERT_GT(report.plans_size(), 0);
    const double best = Best(all, limit);
    EXPECT_NEAR(report.plans(0).batch_seconds() / best, 1, 1e-9)
        << limit << " " << FastestText(all, limit);
    EXPECT_EQ(report.end(), SEARCH_END_COMPLETE);
    EXPECT_NEAR(report.proven_seconds() / best, 1, 1e-9);
    EXPECT_EQ(SumOfCounts(report), report.num_candidates());
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, VariantSearch, testing::Range(0u, 16u));

// A limit that only variants keep.
TEST(VariantSearchTest, FindsPlansWhereNothingElseFits) {
  PlanRequest request = Open(2);
  request.mutable_scenario()->set_runtime(WithOptimizerOffload());
  request.mutable_space()->clear_sharding();
  request.mutable_space()->add_sharding("none");
  const std::vector<Simulated> all = SimulateAll(request);
  double smallest = std::numeric_limits<double>::infinity();
  double variant = smallest;
  for (const Simulated& one : all) {
    (one.is_variant ? variant : smallest) =
        std::min(one.is_variant ? variant : smallest, one.bytes);
  }
  ASSERT_LT(variant, smallest);
  request.set_memory_limit_bytes((variant + smallest) / 2);
  const PlanReport report = Search(request);
  ASSERT_GT(report.plans_size(), 0);
  EXPECT_GT(report.plans(0).scenario().training().optimizer_offload_fraction(),
            0);
  EXPECT_THAT(PlanTable(report, false), HasSubstr("optimizer on host"));
  EXPECT_THAT(PlanCsv(report), HasSubstr(",optimizer_offload_fraction"));
  EXPECT_THAT(PlanJson(report), HasSubstr("\"optimizer_offload_fraction\""));
  request.mutable_space()->add_optimizer_offload_fraction(0);
  EXPECT_FALSE(SearchPlans("test", request, {.num_processes = 1}).ok());
}

TEST(VariantSearchTest, WithoutLimitsNothingIsOffloaded) {
  PlanRequest request = Open(3);
  const PlanReport report = Search(request);
  ASSERT_GT(report.plans_size(), 0);
  const Training& training = report.plans(0).scenario().training();
  EXPECT_EQ(training.cpu_offloading_num_layers(), 0);
  EXPECT_EQ(training.optimizer_offload_fraction(), 0);
  EXPECT_THAT(PlanTable(report, false), Not(HasSubstr("on host")));
}

// What is listed or given is not a variant.
TEST(VariantSearchTest, ListedValuesAreShapes) {
  PlanRequest request = Open(0);
  PlanSpace& space = *request.mutable_space();
  space.clear_tensor();
  space.add_tensor(2);
  space.add_recompute(RECOMPUTE_NONE);
  space.add_cpu_offloading_num_layers(0);
  space.add_cpu_offloading_num_layers(1);
  space.add_optimizer_offload_fraction(0.5);
  space.add_tp_comm_overlap(true);
  const auto made = MakeSpace("test", request);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->variants.size(), 1);
  std::set<int> blocks;
  for (const Shape& shape : made->shapes) {
    blocks.insert(shape.offloaded_blocks);
    EXPECT_EQ(shape.optimizer_offload, 0.5);
    EXPECT_EQ(shape.tensor_overlap, TensorOverlap::kOn);
  }
  EXPECT_EQ(blocks, (std::set<int>{0, 1}));
}

// Shards of the vocabulary are tried on 1F1B with several ranks.
TEST(VariantSearchTest, VocabulariesAreShardedIfListed) {
  PlanRequest request = SmallRequest(8, 4, 8);
  request.mutable_scenario()->mutable_transformer()->set_vocabulary_size(65536);
  request.mutable_scenario()->mutable_transformer()->set_tied_embeddings(false);
  // So small a model would be bound by the host.
  request.mutable_scenario()->add_set_figures("runtime.module_seconds=0");
  PlanSpace& space = *request.mutable_space();
  space.add_tensor(1);
  space.add_pipeline(4);
  space.add_microbatch_size(1);
  space.add_schedules("1f1b");
  space.set_even_layers_only(true);
  space.add_vocabulary_parallel(VOCABULARY_NOT_SHARDED);
  const PlanReport whole = Search(request);
  space.add_vocabulary_parallel(VOCABULARY_ONE_BARRIER);
  space.add_vocabulary_parallel(VOCABULARY_TWO_BARRIERS);
  const PlanReport sharded = Search(request);
  ASSERT_GT(whole.plans_size(), 0);
  ASSERT_GT(sharded.plans_size(), 0);
  EXPECT_LT(sharded.plans(0).batch_seconds(), whole.plans(0).batch_seconds());
  EXPECT_EQ(sharded.plans(0).scenario().parallelism().vocabulary_parallel(),
            VOCABULARY_ONE_BARRIER);
  EXPECT_THAT(PlanTable(sharded, false), HasSubstr("vocabulary"));
}

}  // namespace weir::plan::variants_test
