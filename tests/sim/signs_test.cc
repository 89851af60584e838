// SPDX-License-Identifier: Apache-2.0
// Checks that no time, number of bytes or ratio of a result is negative: the
// difference of two mathematically equal sums is not 0 in floating point.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "results/views/views.h"
#include "scenarios/scenario.h"
#include "schedules/registry.h"
#include "sim/simulate.h"

namespace weir::sim::signs_test {

using Json = nlohmann::json;

// Requires: all numbers of the result are times, bytes or ratios; none is
// signed.
void ExpectNoneNegative(const Json& json, const std::string& path) {
  if (json.is_number()) {
    EXPECT_GE(json.get<double>(), 0) << path;
    return;
  }
  if (!json.is_structured()) return;
  for (const auto& [key, value] : json.items()) {
    ExpectNoneNegative(value, absl::StrCat(path, "/", key));
  }
}

// Checks that rounding errors of freed memory are not reported as memory.
void ExpectNoCrumbs(const Result& result) {
  for (const RankResult& rank : result.ranks()) {
    for (const MemoryClass& held : rank.peak_memory_classes()) {
      EXPECT_GT(held.bytes(), 1e-12 * rank.peak_memory_bytes()) << held.name();
    }
  }
}

// Returns true if the scenario can be simulated.
bool Check(const Scenario& scenario) {
  const auto resolved = scenarios::ResolveScenario("test", scenario);
  if (!resolved.ok()) return false;
  const auto result = Simulate(*resolved);
  if (!result.ok()) return false;
  SCOPED_TRACE(scenario.DebugString());
  const Json json = Json::parse(results::ResultJson("test", *result));
  ExpectNoneNegative(json["result"], "");
  ExpectNoCrumbs(*result);
  EXPECT_NEAR(result->ranks(0).busy_seconds() + result->ranks(0).idle_seconds(),
              result->makespan_seconds(), 1e-9 * result->makespan_seconds());
  return true;
}

// Compares passes with and without a prediction: the sum of a pass's kernels
// differs from the pass in the last digit.
TEST(NoNegativesTest, EstimatesOfWeights) {
  for (const char* schedule : {"pipemare", "xpipe"}) {
    Scenario scenario;
    scenario.set_schedule(schedule);
    scenario.set_model("tiny-gpt");
    scenario.set_cluster("p3-16xlarge");
    scenario.mutable_parallelism()->set_data(1);
    for (const uint32_t num_ranks : {1, 2, 4}) {
      scenario.mutable_parallelism()->set_pipeline(num_ranks);
      for (const uint32_t microbatch : {1, 2, 3}) {
        scenario.mutable_batch()->set_microbatch_size(microbatch);
        scenario.mutable_batch()->set_global_batch_size(16 * microbatch);
        EXPECT_TRUE(Check(scenario));
      }
    }
  }
}

// The sums are allocated and freed in different orders.
TEST(NoNegativesTest, MemoryOfFractionsOfBytes) {
  Scenario scenario;
  scenario.set_schedule("dualpipe-v");
  scenario.mutable_parallelism()->set_pipeline(4);
  scenario.mutable_parallelism()->set_chunks(2);
  scenario.set_num_microbatches(9);
  GivenCosts* costs = scenario.mutable_costs();
  costs->set_hop_seconds(1.69);
  GivenCosts::Stage* stage = costs->add_stages();
  stage->set_forward_seconds(1.61);
  stage->set_backward_input_seconds(1.57);
  stage->set_backward_weight_seconds(1.94);
  stage->set_activation_bytes(0.669);
  stage->set_weight_gradient_bytes(1.76);
  EXPECT_TRUE(Check(scenario));
}

class SignsTest : public ::testing::TestWithParam<std::string> {
 protected:
  double Draw(double low, double high) {
    return std::uniform_real_distribution<>(low, high)(random_);
  }
  int OneOf(std::vector<int> values) {
    return values[std::uniform_int_distribution<size_t>(
        0, values.size() - 1)(random_)];
  }

  std::mt19937 random_{7};
};

TEST_P(SignsTest, NothingIsNegativeWithCostsByHand) {
  int simulated = 0;
  for (int i = 0; i < 60 && simulated < 16; ++i) {
    Scenario scenario;
    scenario.set_schedule(GetParam());
    scenario.mutable_parallelism()->set_pipeline(OneOf({1, 2, 3, 4, 8}));
    scenario.mutable_parallelism()->set_chunks(OneOf({1, 2}));
    GivenCosts* costs = scenario.mutable_costs();
    scenario.set_num_microbatches(OneOf({1, 2, 4, 7, 8, 16}));
    costs->set_hop_seconds(Draw(0, 0.5));
    GivenCosts::Stage* stage = costs->add_stages();
    stage->set_forward_seconds(Draw(0.1, 2));
    stage->set_backward_input_seconds(Draw(0.1, 2));
    stage->set_backward_weight_seconds(Draw(0.1, 2));
    stage->set_activation_bytes(Draw(0.1, 2));
    stage->set_weight_gradient_bytes(Draw(0.01, 0.1));
    stage->set_offload_seconds(Draw(0.1, 2));
    stage->set_prediction_seconds(Draw(0, 0.2));
    stage->set_codec_seconds(Draw(0, 0.2));
    simulated += Check(scenario);
  }
  EXPECT_GT(simulated, 2);
}

TEST_P(SignsTest, NothingIsNegativeForAModel) {
  int simulated = 0;
  for (int i = 0; i < 60 && simulated < 8; ++i) {
    Scenario scenario;
    scenario.set_schedule(GetParam());
    scenario.set_model(OneOf({0, 1}) == 0 ? "tiny-gpt" : "gpt2");
    scenario.set_cluster(OneOf({0, 1}) == 0 ? "p3-16xlarge" : "dgx-a100");
    const int data = OneOf({1, 1, 2});
    scenario.mutable_parallelism()->set_pipeline(OneOf({1, 2, 4}));
    scenario.mutable_parallelism()->set_chunks(OneOf({1, 2}));
    scenario.mutable_parallelism()->set_data(data);
    scenario.mutable_batch()->set_microbatch_size(OneOf({1, 3}));
    scenario.mutable_batch()->set_global_batch_size(
        scenario.batch().microbatch_size() * data * OneOf({4, 8, 16}));
    simulated += Check(scenario);
  }
  EXPECT_GT(simulated, 2);
}

std::vector<std::string> AllSchedules() {
  std::vector<std::string> names;
  for (const schedules::ScheduleKind& kind : schedules::AllScheduleKinds()) {
    names.emplace_back(kind.name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, SignsTest, ::testing::ValuesIn(AllSchedules()),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name)
                             c = c == '-' || c == '.' ? '_' : c;
                           return name;
                         });

}  // namespace weir::sim::signs_test
