// SPDX-License-Identifier: Apache-2.0
#include "plan/sweep/fast_estimate_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/textproto.h"
#include "sim/simulate.h"

namespace weir::plan::fast_estimate_view_test {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::Not;

scenarios::ResolvedScenario Resolve(absl::string_view text) {
  Scenario scenario;
  EXPECT_TRUE(ParseTextProto("test", text, &scenario).ok());
  const auto resolved = scenarios::ResolveScenario("test", scenario);
  EXPECT_TRUE(resolved.ok()) << resolved.status();
  return *resolved;
}

constexpr char kReplicas[] = R"(
  model: "gpt-2.2b" cluster: "p3-16xlarge" num_nodes: 2 schedule: "1f1b"
  parallelism { pipeline: 4 data: 4 }
  batch { microbatch_size: 1 global_batch_size: 256 sequence_length: 512 }
  training { recompute: RECOMPUTE_FULL precision: MIXED_FP16 optimizer: ADAM }
)";
constexpr char kGivenCosts[] = R"(
  schedule: "pipedream" parallelism { pipeline: 2 } num_microbatches: 4
  costs { stages { forward_seconds: 1 backward_seconds: 2 } }
)";

TEST(FastEstimateViewTest, FiguresAreThoseOfTheFullSimulation) {
  for (const char* text : {kReplicas, kGivenCosts}) {
    const scenarios::ResolvedScenario scenario = Resolve(text);
    const auto full = sim::Simulate(scenario);
    ASSERT_TRUE(full.ok()) << full.status();
    const auto run = sim::FastSimulator().Estimate(scenario);
    ASSERT_TRUE(run.ok()) << run.status();
    const Json result =
        Json::parse(FastEstimateJson("weir", scenario, *run))["result"];
    const auto near = [&](const char* key, double expected) {
      EXPECT_NEAR(result[key].get<double>(), expected, 1e-9 * expected) << key;
    };
    near("batch_seconds", full->batch_seconds());
    near("makespan_seconds", full->makespan_seconds());
    near("peak_memory_bytes", full->peak_memory_bytes());
    EXPECT_EQ(result["fits_memory"], full->fits_memory());
    EXPECT_EQ(result.contains("samples_per_second"),
              full->has_samples_per_second());
    if (full->has_samples_per_second()) {
      near("samples_per_second", full->samples_per_second());
      near("tokens_per_second", full->tokens_per_second());
    }
  }
}

TEST(FastEstimateViewTest, SaysHowItWasFound) {
  const scenarios::ResolvedScenario scenario = Resolve(kReplicas);
  const auto run = sim::FastSimulator().Estimate(scenario);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_TRUE(run->reduced && run->extrapolated);
  const Json result =
      Json::parse(FastEstimateJson("weir", scenario, *run))["result"];
  EXPECT_EQ(result["method"], "reduced, extrapolated");
  EXPECT_EQ(result["num_gpus"], 16);
  EXPECT_LT(result["num_simulated_gpus"], 16);
  EXPECT_EQ(result["num_microbatches"], 64);
  EXPECT_LT(result["num_simulated_microbatches"], 64);
  EXPECT_EQ(result["rank_peak_memory_bytes"].size(), 4);
  EXPECT_FALSE(result.contains("not_reduced"));
  const std::string table = FastEstimateTable(scenario, *run);
  EXPECT_THAT(table, HasSubstr(" of 16 GPUs, the others are symmetric"));
  EXPECT_THAT(table, HasSubstr(" of 64, the steady state repeats"));
}

TEST(FastEstimateViewTest, CallsASchedulesAliasByItsOwnName) {
  scenarios::ResolvedScenario scenario = Resolve(kReplicas);
  scenario.scenario.set_schedule("pipedream-flush");
  const auto run = sim::FastSimulator().Estimate(scenario);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(Json::parse(
                FastEstimateJson("weir", scenario, *run))["result"]["schedule"],
            "1f1b");
  EXPECT_THAT(FastEstimateTable(scenario, *run),
              Not(HasSubstr("pipedream-flush")));
}

TEST(FastEstimateViewTest, SaysWhyAllWasRun) {
  scenarios::ResolvedScenario scenario = Resolve(kGivenCosts);
  scenario.scenario.set_num_batches(3);
  const auto run = sim::FastSimulator().Estimate(scenario);
  ASSERT_TRUE(run.ok()) << run.status();
  const std::string table = FastEstimateTable(scenario, *run);
  EXPECT_THAT(table, HasSubstr("all 2 GPUs: one GPU per pipeline rank"));
  EXPECT_THAT(table, HasSubstr(": no flush"));
}

}  // namespace weir::plan::fast_estimate_view_test
