// SPDX-License-Identifier: Apache-2.0
// What a request without an answer is told.
#include "plan/infeasible.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/units.h"
#include "plan/joint_search.h"
#include "tests/plan/small_requests.h"

namespace weir {
namespace {

using testing::HasSubstr;

TEST(InfeasibleTest, NamesTheSmallestPlanAndTheLimitThatItNeeds) {
  PlanRequest request = SmallRequest(4, 2, 8);
  request.mutable_space()->add_schedules("1f1b");
  request.mutable_space()->add_schedules("gpipe");
  request.mutable_space()->add_chunks(1);
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
              HasSubstr("the smallest plan found needs " + FormatBytes(bytes)));
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
              HasSubstr("nearest that are: 8 and 12"));
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
  // 69 B parameters of 16 bytes on GPUs of 80 GiB.
  EXPECT_THAT(
      std::string(none.status().message()),
      HasSubstr("weights, states and a microbatch need 16 GPUs or more"));
}

TEST(InfeasibleTest, NamesWhatRefusesWhereNothingIsLegal) {
  PlanRequest request = SmallRequest(4, 2, 8);
  request.mutable_space()->add_schedules("dualpipe");
  request.mutable_space()->add_chunks(2);
  const auto none = SearchPlans("test", request);
  EXPECT_TRUE(absl::IsFailedPrecondition(none.status())) << none.status();
  EXPECT_THAT(std::string(none.status().message()),
              HasSubstr("no candidate is legal"));
}

TEST(InfeasibleTest, RefusesMoreGpusThanThereAre) {
  const PlanRequest request = SmallRequest(4, 16, 8);
  const auto none = SearchPlans("test", request);
  EXPECT_TRUE(absl::IsInvalidArgument(none.status()));
  EXPECT_THAT(std::string(none.status().message()),
              HasSubstr("space.gpus is 16, expected at most the cluster's 8"));
}

}  // namespace
}  // namespace weir
