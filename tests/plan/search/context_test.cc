// SPDX-License-Identifier: Apache-2.0
// Tests of context parallelism as a dimension of the search.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "plan/search/joint_search.h"
#include "plan/search/plan_views.h"
#include "plan/search/space.h"

namespace weir::plan::context_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Llama 3.1 8B on DGX H100, restricted to few plans.
PlanRequest Request(uint32_t sequence_length, uint32_t num_gpus) {
  PlanRequest request;
  Scenario& scenario = *request.mutable_scenario();
  scenario.set_model("llama-3.1-8b");
  scenario.set_cluster("dgx-h100");
  scenario.mutable_batch()->set_sequence_length(sequence_length);
  scenario.mutable_batch()->set_global_batch_size(num_gpus);
  PlanSpace& space = *request.mutable_space();
  space.add_gpus(num_gpus);
  space.add_pipeline(1);
  space.add_tensor(2);
  space.add_microbatch_size(1);
  space.add_recompute(RECOMPUTE_FULL);
  space.add_orders("tp-dp-pp");
  space.add_schedules("1f1b");
  space.set_even_layers_only(true);
  return request;
}

std::set<int> ContextsOf(const PlanRequest& request) {
  const auto space = MakeSpace("test", request);
  EXPECT_TRUE(space.ok()) << space.status();
  std::set<int> sizes;
  if (!space.ok()) return sizes;
  for (const Shape& shape : space->shapes) {
    EXPECT_EQ(shape.num_gpus(), request.space().gpus(0));
    sizes.insert(shape.context);
  }
  return sizes;
}

TEST(ContextTest, OnlyLongSequencesAreShared) {
  EXPECT_THAT(ContextsOf(Request(8192, 64)), ElementsAre(1));
  EXPECT_THAT(ContextsOf(Request(16384, 64)), ElementsAre(1, 2));
  EXPECT_THAT(ContextsOf(Request(131072, 64)), ElementsAre(1, 2, 4, 8));
  PlanRequest asked = Request(8192, 64);
  asked.mutable_space()->add_context(16);
  EXPECT_THAT(ContextsOf(asked), ElementsAre(16));
}

// The logits of 131,072 tokens do not fit two GPUs.
TEST(ContextTest, FindsPlansThatShareLongSequences) {
  for (const uint32_t num_gpus : {8u, 64u}) {
    SearchOptions options;
    options.num_processes = 1;
    const auto report = SearchPlans("test", Request(131072, num_gpus), options);
    ASSERT_TRUE(report.ok()) << report.status();
    ASSERT_GT(report->plans_size(), 0);
    for (const Plan& plan : report->plans()) {
      EXPECT_GT(plan.scenario().parallelism().context(), 1u);
      EXPECT_EQ(plan.num_gpus(), num_gpus);
    }
    EXPECT_THAT(PlanTable(*report, false), HasSubstr(" cp "));
    EXPECT_THAT(PlanCsv(*report), HasSubstr(",context"));
  }
}

TEST(ContextTest, TablesOfOtherPlansDoNotNameIt) {
  SearchOptions options;
  options.num_processes = 1;
  const auto report = SearchPlans("test", Request(4096, 8), options);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(PlanTable(*report, false), Not(HasSubstr(" cp ")));
  EXPECT_THAT(PlanCsv(*report), Not(HasSubstr(",context")));
}

}  // namespace weir::plan::context_test
