// SPDX-License-Identifier: Apache-2.0
#include "plan/papers/planner_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "plan/papers/run_planner.h"
#include "tests/plan/search/small_requests.h"

namespace weir::plan::planner_request_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string Message(const Problems& problems) {
  return std::string(problems.ToStatus().message());
}

// Returns the options that have a problem.
std::vector<std::string> Refused(const PlanRequest& request,
                                 bool synchronous = false,
                                 bool explain = false) {
  Problems problems("test");
  RefuseSearchOptions(request, synchronous, explain, &problems);
  std::vector<std::string> options;
  if (problems.empty()) return options;
  for (absl::string_view line : absl::StrSplit(Message(problems), '\n')) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    options.push_back(words.at(1));
  }
  return options;
}

TEST(RefuseSearchOptionsTest, PlannersTakeSizesAndAMemoryLimit) {
  PlanRequest request;
  PlanSpace& space = *request.mutable_space();
  space.add_tensor(2);
  space.add_microbatch_size(1);
  space.add_recompute(RECOMPUTE_FULL);
  space.add_gpus(8);
  request.set_memory_limit_bytes(1e9);
  EXPECT_THAT(Refused(request), IsEmpty());
}

TEST(RefuseSearchOptionsTest, EveryOtherOptionIsRefused) {
  PlanRequest request;
  PlanSpace& space = *request.mutable_space();
  space.add_pipeline(1);
  space.add_data(1);
  space.add_expert(1);
  space.add_chunks(1);
  space.add_schedules("gpipe");
  space.add_orders("tp-dp-pp");
  space.add_sharding("none");
  space.set_even_layers_only(true);
  request.set_tokens(1e12);
  request.set_gap(0.01);
  space.set_asynchronous(true);
  request.set_memory_margin(0);
  request.set_objective(OBJECTIVE_MEMORY);
  request.set_price_per_gpu_hour(1);
  request.set_num_plans(1);
  request.set_node_power_cap_watts(4000);
  request.set_rack_power_cap_watts(8000);
  request.set_nodes_per_rack(2);
  EXPECT_THAT(
      Refused(request, /*synchronous=*/true, /*explain=*/true),
      ElementsAre("--pp", "--dp", "--ep", "--chunks", "--schedule", "--order",
                  "--sharding", "--even-layers", "--asynchronous",
                  "--memory-margin", "--synchronous", "--objective",
                  "--price-per-gpu-hour", "--node-power-cap",
                  "--rack-power-cap", "--nodes-per-rack", "--plans", "--tokens",
                  "--gap", "--explain"));
}

TEST(GraphRequestTest, OptionsOfAGraphAreRefusedWithoutOne) {
  PipeDreamOptions options;
  Problems none("test");
  RefuseGraphOptions(options, &none);
  EXPECT_TRUE(none.empty());
  options.num_machines = {4};
  options.straight = true;
  options.activation_compression_ratio = 1;
  Problems problems("test");
  RefuseGraphOptions(options, &problems);
  EXPECT_EQ(Message(problems),
            "test: --machines is given without --graph\n"
            "test: --straight is given without --graph\n"
            "test: --activation-compression-ratio is given without --graph");
}

TEST(GraphRequestTest, AGraphNeedsItsPlannerMachinesAndBandwidths) {
  PipeDreamOptions options;
  Problems problems("test");
  CheckGraphRequest("", options, &problems);
  EXPECT_THAT(Message(problems),
              HasSubstr("test: --algorithm is missing, expected pipedream"));
  EXPECT_THAT(Message(problems), HasSubstr("test: --machines is missing"));
  EXPECT_THAT(Message(problems), HasSubstr("test: --bandwidth is missing"));
  options.num_machines = {4};
  options.bytes_per_second = {1e9};
  Problems none("test");
  CheckGraphRequest("pipedream", options, &none);
  EXPECT_TRUE(none.empty()) << Message(none);
  Problems other("test");
  CheckGraphRequest("dapple", options, &other);
  EXPECT_EQ(Message(other),
            "test: --algorithm is dapple, expected pipedream with --graph");
}

TEST(GraphRequestTest, ThePublishedCountHasADefaultLimit) {
  PipeDreamOptions options;
  SetGraphMemoryLimit(0, &options);
  EXPECT_FALSE(options.memory_limit_bytes.has_value());
  options.published_memory = true;
  SetGraphMemoryLimit(0, &options);
  EXPECT_EQ(options.memory_limit_bytes, 16e9);
  SetGraphMemoryLimit(5, &options);
  EXPECT_EQ(options.memory_limit_bytes, 5);
}

TEST(GraphRequestTest, WarningsNameWhatAPlanLacks) {
  AntichainDag dag;
  PipeDreamPlan plan;
  EXPECT_THAT(GraphPlanWarnings(dag, {}, plan), IsEmpty());
  plan.num_states = 5;
  plan.num_cut_states = 2;
  dag.node_names = {"a", "b", "c"};
  dag.unreached_nodes = {1, 2};
  EXPECT_THAT(GraphPlanWarnings(dag, {}, plan),
              ElementsAre(HasSubstr("cuts at 2 of 5 antichains"),
                          HasSubstr("first source: b and 1 more")));
}

TEST(GivenByRequestTest, TheRequestSetsSizes) {
  PlanRequest request = SmallRequest(4, 4, 16);
  PlanSpace& space = *request.mutable_space();
  space.add_tensor(2);
  space.add_recompute(RECOMPUTE_FULL);
  request.set_memory_limit_bytes(1e9);
  const auto given = GivenByRequest("test", request.scenario(), request);
  ASSERT_TRUE(given.ok()) << given.status();
  EXPECT_EQ(given->scenario.parallelism().tensor(), 2u);
  EXPECT_EQ(given->scenario.batch().microbatch_size(), 1u);
  EXPECT_EQ(given->scenario.training().recompute(), RECOMPUTE_FULL);
  EXPECT_EQ(given->scenario.parallelism().gpus_size(), 4);
  EXPECT_EQ(MostMemoryBytes(*given), 1e9);
}

TEST(GivenByRequestTest, OptionsHaveOneValue) {
  PlanRequest request = SmallRequest(4, 4, 16);
  request.mutable_space()->add_tensor(1);
  request.mutable_space()->add_tensor(2);
  request.mutable_space()->add_gpus(8);
  const auto given = GivenByRequest("test", request.scenario(), request);
  EXPECT_EQ(given.status().message(),
            "test: --tp has 2 values, expected one with --algorithm\n"
            "test: --gpus has 2 values, expected one with --algorithm");
}

// Returns a planner that finds a plan if the device has `bytes` of memory.
PaperPlanner NeedsBytes(double bytes) {
  PaperPlanner planner;
  planner.name = "needs-bytes";
  planner.plan = [bytes](const scenarios::ResolvedScenario& given,
                         SharedFacts*) -> absl::StatusOr<PlannedPipeline> {
    if (given.device.memory_bytes().value() >= bytes) return PlannedPipeline();
    return absl::NotFoundError("nothing fits");
  };
  return planner;
}

std::string NothingFitsMessage(double needed_bytes) {
  PlanRequest request = SmallRequest(4, 4, 16);
  request.set_memory_limit_bytes(1e9);
  const absl::Status status =
      NothingFits(NeedsBytes(needed_bytes), "test", request.scenario(), request,
                  absl::NotFoundError("why"));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  return std::string(status.message());
}

TEST(NothingFitsTest, TheMessageNamesTheMemoryThatIsEnough) {
  EXPECT_THAT(
      NothingFitsMessage(2e9),
      testing::AllOf(HasSubstr("test: needs-bytes: nothing fits 954 MiB: the "
                               "smallest plan found needs 1.8"),
                     HasSubstr("raise --memory-limit to 20")));
  EXPECT_THAT(NothingFitsMessage(1e12), HasSubstr("use another device"));
  EXPECT_EQ(NothingFitsMessage(1e13),
            "why; no amount of memory suffices: change the sizes");
}

}  // namespace weir::plan::planner_request_test
