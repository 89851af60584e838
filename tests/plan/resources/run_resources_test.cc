// SPDX-License-Identifier: Apache-2.0
#include "plan/resources/run_resources.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "base/textproto.h"
#include "scenarios/scenario.h"
#include "sim/prepare.h"
#include "sim/simulate.h"

namespace weir::plan::run_resources_test {

using results::RunResources;

scenarios::ResolvedScenario Resolve(const std::string& more) {
  Scenario scenario;
  EXPECT_TRUE(ParseTextProto("", R"(
      name: "two nodes" model: "gpt2" cluster: "p3-16xlarge" num_nodes: 2
      parallelism { tensor: 2 pipeline: 2 data: 4 order: "tp-dp-pp" }
      batch { microbatch_size: 1 global_batch_size: 16 sequence_length: 1024 }
      schedule: "1f1b" )" + more,
                             &scenario)
                  .ok());
  const auto resolved = scenarios::ResolveScenario("test", scenario);
  EXPECT_TRUE(resolved.ok()) << resolved.status();
  return *resolved;
}

Result Simulated(const scenarios::ResolvedScenario& scenario) {
  sim::SimulateOptions options;
  options.keep_timeline = true;
  const auto result = sim::Simulate(scenario, options);
  EXPECT_TRUE(result.ok()) << result.status();
  return *result;
}

// What the intervals of a link hold is what the transfers over it carry.
TEST(RunResourcesTest, UtilizationsAddUpToTheBytesOfTransfers) {
  const auto scenario = Resolve("");
  const Result result = Simulated(scenario);
  const RunResources resources = ResourcesOf(result);
  ASSERT_FALSE(resources.links.empty());
  const scenarios::Network network = sim::NetworkOf(scenario);
  const auto& transfers = result.timeline().transfers();
  for (const RunResources::Link& link : resources.links) {
    double sent = 0;
    for (int i = 0; i < transfers.from_gpu_size(); ++i) {
      const auto route = network.RouteBetween(
          static_cast<int>(
              result.ranks(static_cast<int>(transfers.from_gpu(i))).gpu()),
          static_cast<int>(
              result.ranks(static_cast<int>(transfers.to_gpu(i))).gpu()));
      for (const int32_t index : route.links) {
        if (network.links()[index].name == link.name) {
          sent += transfers.bytes(i);
        }
      }
    }
    const double carried =
        std::accumulate(link.utilization.begin(), link.utilization.end(), 0.0) *
        resources.interval_seconds * link.bytes_per_second;
    EXPECT_GT(sent, 0) << link.name;
    EXPECT_NEAR(carried / sent, 1, 1e-9) << link.name;
    EXPECT_NEAR(link.bytes / sent, 1, 1e-12) << link.name;
    EXPECT_GE(link.num_pairs, 2) << link.name;
  }
  EXPECT_NEAR(resources.interval_seconds * kLinkIntervals,
              result.makespan_seconds(), 1e-12);
}

// No transfer is faster than its links.
TEST(RunResourcesTest, NoLinkCarriesMoreThanItsRate) {
  for (const RunResources::Link& link :
       ResourcesOf(Simulated(Resolve(""))).links) {
    for (const double utilization : link.utilization) {
      EXPECT_GE(utilization, 0);
      EXPECT_LE(utilization, 1 + 1e-6) << link.name;
    }
  }
}

TEST(RunResourcesTest, KernelsStayBelowTheRoof) {
  const RunResources resources = ResourcesOf(Simulated(Resolve("")));
  ASSERT_FALSE(resources.kernels.empty());
  ASSERT_FALSE(resources.peaks.empty());
  const auto section = results::RooflineSection({&resources, 1});
  double ratios = 0;
  for (const auto& part : section["runs"][0]["parts"]) {
    ratios += part["seconds_ratio"].get<double>();
    if (part["roof_ratio"].is_null()) continue;
    EXPECT_GT(part["roof_ratio"].get<double>(), 0) << part;
    EXPECT_LE(part["roof_ratio"].get<double>(), 1) << part;
  }
  EXPECT_NEAR(ratios, 1, 1e-9);
}

TEST(RunResourcesTest, AreEmptyWithoutAScenario) {
  Result result = Simulated(Resolve(""));
  result.mutable_provenance()->set_scenario("another { format }");
  const RunResources resources = ResourcesOf(result);
  EXPECT_TRUE(resources.links.empty());
  EXPECT_TRUE(resources.kernels.empty());
  const auto section = results::SharedLinksSection({&resources, 1});
  EXPECT_TRUE(section["runs"][0].is_null());
}

}  // namespace weir::plan::run_resources_test
