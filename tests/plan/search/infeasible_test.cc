// SPDX-License-Identifier: Apache-2.0
// Checks the messages for requests that no plan satisfies.
#include "plan/search/infeasible.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/units.h"
#include "plan/search/joint_search.h"
#include "tests/plan/search/small_requests.h"

namespace weir::plan::infeasible_test {

using testing::HasSubstr;

TEST(InfeasibleTest, NamesTheSmallestPlanAndTheLimitThatItNeeds) {
  PlanRequest request = SmallRequest(4, 2, 8);
  request.mutable_space()->add_schedules("1f1b");
  request.mutable_space()->add_schedules("gpipe");
  request.mutable_space()->add_chunks(1);
  request.mutable_space()->add_optimizer_offload_fraction(0);
  request.set_num_plans(1);
  request.set_objective(OBJECTIVE_MEMORY);
  const auto smallest = SearchPlans("test", request);
  ASSERT_TRUE(smallest.ok()) << smallest.status();
  const double bytes = smallest->plans(0).peak_memory_bytes();

  request.set_objective(OBJECTIVE_TIME);
  request.set_memory_limit_bytes(bytes * 0.99);
  const auto none = SearchPlans("test", request);
  EXPECT_TRUE(absl::IsFailedPrecondition(none.status())) << none.status();
  EXPECT_THAT(std::string(none.status().message()),
              HasSubstr("the smallest plan found without offloading needs " +
                        FormatBytes(bytes)));
  EXPECT_THAT(std::string(none.status().message()),
              HasSubstr("raise --memory-limit to "));

  request.set_memory_limit_bytes(bytes);
  EXPECT_TRUE(SearchPlans("test", request).ok());
}

TEST(InfeasibleTest, NamesTheNearestBatchesThatReplicasDivide) {
  PlanRequest request = SmallRequest(4, 4, 10);
  request.mutable_space()->add_data(4);
  const auto none = SearchPlans("test", request);
  EXPECT_TRUE(absl::IsFailedPrecondition(none.status())) << none.status();
  EXPECT_THAT(std::string(none.status().message()),
              HasSubstr("global batch 10 is not divisible"));
  EXPECT_THAT(std::string(none.status().message()),
              HasSubstr("closest divisible batches: 8 and 12"));
}

TEST(InfeasibleTest, SaysHowManyGpusWouldDo) {
  PlanRequest request = SmallRequest(4, 1, 8);
  Scenario& scenario = *request.mutable_scenario();
  scenario.clear_transformer();
  scenario.clear_num_nodes();
  scenario.set_model("llama-2-70b");
  request.mutable_space()->add_schedules("1f1b");
  request.mutable_space()->add_microbatch_size(1);
  const auto none = SearchPlans("test", request);
  EXPECT_TRUE(absl::IsFailedPrecondition(none.status())) << none.status();
  // 69 B parameters of 16 bytes on GPUs with 80 GiB.
  EXPECT_THAT(
      std::string(none.status().message()),
      HasSubstr("weights, optimizer states and one microbatch fit without "
                "offloading on "
                "16 GPUs (--nodes "
                "2) and on no fewer nodes"));
}

// 16 bytes for 69 B parameters need at least 65 GPUs with 15.8 GiB. Sixteen
// nodes, twice the eight, would be more than enough.
TEST(InfeasibleTest, TriesNumbersOfNodesBetweenPowersOfTwo) {
  PlanRequest request = SmallRequest(4, 64, 64);
  Scenario& scenario = *request.mutable_scenario();
  scenario.clear_transformer();
  scenario.set_cluster("p3-16xlarge");
  scenario.set_num_nodes(8);
  scenario.set_model("llama-2-70b");
  request.mutable_space()->add_schedules("1f1b");
  request.mutable_space()->add_microbatch_size(1);
  request.mutable_space()->add_tensor(8);
  request.mutable_space()->add_chunks(1);
  request.mutable_space()->add_recompute(RECOMPUTE_FULL);
  request.mutable_space()->add_orders("tp-dp-pp");
  request.mutable_space()->add_optimizer_offload_fraction(0);
  const std::string message(SearchPlans("test", request).status().message());
  int nodes = 0;
  for (int n = 1; n <= 64; ++n) {
    if (message.find(absl::StrCat("(--nodes ", n, ") and on no fewer nodes")) !=
        std::string::npos) {
      nodes = n;
    }
  }
  EXPECT_GT(nodes * 8 * 15.8 * (1 << 30), 16 * 68.9e9) << message;
  EXPECT_LT(nodes, 16) << message;
}

// The smallest plan fits the device, but not the part of it that the margin
// leaves.
TEST(InfeasibleTest, NamesNodesThatFitWhereTheMarginAloneFails) {
  PlanRequest request = SmallRequest(4, 8, 16);
  Scenario& scenario = *request.mutable_scenario();
  scenario.clear_transformer();
  scenario.set_cluster("p3-16xlarge");
  scenario.set_model("gpt-2.2b");
  request.mutable_space()->add_schedules("1f1b");
  request.mutable_space()->add_tensor(8);
  request.set_objective(OBJECTIVE_MEMORY);
  request.set_num_plans(1);
  const auto smallest = SearchPlans("test", request);
  ASSERT_TRUE(smallest.ok()) << smallest.status();
  request.set_memory_margin(1 - 0.99 * smallest->plans(0).peak_memory_bytes() /
                                    smallest->memory_limit_bytes());
  const std::string message(SearchPlans("test", request).status().message());
  EXPECT_THAT(message, HasSubstr("of which --memory-margin keeps "));
  EXPECT_THAT(message, HasSubstr("; a plan fits on 16 GPUs (--nodes 2)"));

  scenario.set_num_nodes(2);
  request.mutable_space()->clear_gpus();
  EXPECT_TRUE(SearchPlans("test", request).ok());
}

TEST(InfeasibleTest, NamesWhatRefusesWhereNothingIsLegal) {
  PlanRequest request = SmallRequest(4, 2, 8);
  request.mutable_space()->add_schedules("dualpipe");
  request.mutable_space()->add_chunks(2);
  const auto none = SearchPlans("test", request);
  EXPECT_TRUE(absl::IsFailedPrecondition(none.status())) << none.status();
  EXPECT_THAT(std::string(none.status().message()),
              HasSubstr("no candidate is valid"));
}

// Returns a space with one layout per share. A layout accepts global batches
// that are multiples of its share. Requires: the shares are even.
Space SpaceOfBatches(int batch, const std::vector<int>& shares) {
  Space space;
  space.base.label = "test";
  space.base.scenario.mutable_batch()->set_global_batch_size(batch);
  for (const int share : shares) {
    Shape& shape = space.shapes.emplace_back();
    shape.data = share / 2;
    shape.microbatch_size = 2;
  }
  return space;
}

TEST(InfeasibleTest, NamesTheFiveReasonsThatRefuseMost) {
  const Space space = SpaceOfBatches(8, {8});
  std::map<std::string, uint64_t> problems = {
      {"a", 30}, {"b", 10}, {"c", 60}, {"d", 40}};
  EXPECT_EQ(NothingValid(space, problems).message(),
            "test: no candidate is valid; most frequent reasons:\n"
            "c (60 candidates)\nd (40 candidates)\na (30 candidates)\n"
            "b (10 candidates)");
  problems.insert({{"e", 20}, {"f", 50}, {"g", 1}});
  EXPECT_EQ(NothingValid(space, problems).message(),
            "test: no candidate is valid; most frequent reasons:\n"
            "c (60 candidates)\nf (50 candidates)\nd (40 candidates)\n"
            "a (30 candidates)\ne (20 candidates)");
}

// The nearest batches to 31 are 28 (2 x 14) and 32 (2 x 16).
TEST(InfeasibleTest, NamesBatchesBelowOnlyWhereThereAreAny) {
  const std::vector<int> shares = {12, 14, 16, 18, 20};
  const std::string divides =
      " is not divisible by data x microbatch size of any layout "
      "(12, 14, 16, 18, ...): closest divisible batches: ";
  EXPECT_EQ(NothingValid(SpaceOfBatches(10, shares), {}).message(),
            "test: global batch 10" + divides + "12");
  EXPECT_EQ(NothingValid(SpaceOfBatches(31, shares), {}).message(),
            "test: global batch 31" + divides + "28 and 32");
  EXPECT_THAT(
      std::string(
          NothingValid(SpaceOfBatches(31, {12, 14, 16, 18}), {}).message()),
      HasSubstr("(12, 14, 16, 18): closest"));
}

TEST(InfeasibleTest, RefusesMoreGpusThanThereAre) {
  const PlanRequest request = SmallRequest(4, 16, 8);
  const auto none = SearchPlans("test", request);
  EXPECT_TRUE(absl::IsInvalidArgument(none.status()));
  EXPECT_THAT(std::string(none.status().message()),
              HasSubstr("space.gpus is 16, expected at most the cluster's 8"));
}

}  // namespace weir::plan::infeasible_test
