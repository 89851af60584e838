// SPDX-License-Identifier: Apache-2.0
#include "plan/resources/run_resources.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "base/textproto.h"
#include "results/validate.h"
#include "scenarios/scenario.h"
#include "schedules/semantics.h"
#include "sim/costs/schedule_costs.h"
#include "sim/fill_result.h"
#include "sim/graph/pipeline_graph.h"
#include "sim/prepare.h"
#include "sim/report/shared_links.h"
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

// Bytes that flows of the task graph move over a link, and the pairs of GPUs.
struct Moved {
  double transfers = 0, collectives = 0;
  std::set<std::pair<int, int>> pairs;
};

std::map<std::string, Moved> MovedBytes(
    const scenarios::ResolvedScenario& scenario) {
  const scenarios::Network network = sim::NetworkOf(scenario);
  sim::SimulatedRun run;
  run.schedule = *sim::ScheduleOf(scenario, network, 1);
  run.semantics = *schedules::InterpretSchedule(run.schedule);
  run.costs = *sim::ComputeCosts(scenario, run.schedule.num_stages,
                                 sim::VersionsOfStages(run.semantics));
  EXPECT_TRUE(
      sim::ApplySchedule(scenario, network, run.schedule, &run.costs).ok());
  const sim::PipelineGraph graph =
      sim::BuildPipelineGraph(sim::InputsOf(scenario, network, run));
  std::map<std::string, Moved> moved;
  for (int32_t task = 0; task < graph.tasks.num_tasks(); ++task) {
    if (graph.tasks.is_timer(task)) continue;
    const sim::GpuPair& pair = graph.tasks.pairs[graph.tasks.pair(task)];
    for (const int32_t link : pair.route.links) {
      Moved& of = moved[network.links()[link].name];
      (task < graph.ranges.end_of_gathers ? of.collectives : of.transfers) +=
          graph.tasks.amount(task);
      of.pairs.insert(
          {pair.from % network.num_gpus(), pair.to % network.num_gpus()});
    }
  }
  return moved;
}

// What the intervals of a link hold is what the simulator moves over it.
TEST(RunResourcesTest, UtilizationsAddUpToTheBytesOfFlows) {
  for (const char* more : {"", "training { fully_sharded: true }",
                           "communication { transfers: BLOCKING }"}) {
    SCOPED_TRACE(more);
    const auto scenario = Resolve(more);
    const Result result = Simulated(scenario);
    const RunResources resources = ResourcesOf(result);
    ASSERT_FALSE(resources.links.empty());
    const std::map<std::string, Moved> moved = MovedBytes(scenario);
    double transfers = 0, collectives = 0;
    for (const RunResources::Link& link : resources.links) {
      const Moved& expected = moved.at(link.name);
      EXPECT_EQ(link.num_pairs, expected.pairs.size()) << link.name;
      EXPECT_GE(link.num_pairs, 2) << link.name;
      const double all = expected.transfers + expected.collectives;
      EXPECT_NEAR(link.transfer_bytes, expected.transfers, 1e-9 * all);
      EXPECT_NEAR(link.collective_bytes, expected.collectives, 1e-9 * all);
      EXPECT_EQ(link.host_bytes, 0);
      const double carried = std::accumulate(link.utilization.begin(),
                                             link.utilization.end(), 0.0) *
                             resources.interval_seconds * link.bytes_per_second;
      EXPECT_NEAR(carried / all, 1, 1e-9) << link.name;
      transfers += link.transfer_bytes;
      collectives += link.collective_bytes;
    }
    // Nodes exchange activations and gradients over the same NICs.
    EXPECT_GT(transfers, 0);
    EXPECT_GT(collectives, 0);
    size_t num_shared = 0;
    for (const auto& [name, of] : moved) num_shared += of.pairs.size() > 1;
    EXPECT_EQ(resources.links.size() + resources.num_links_left_out,
              num_shared);
    EXPECT_NEAR(resources.interval_seconds * sim::kSharedLinkIntervals,
                result.makespan_seconds(), 1e-12);
  }
}

// Links of stored results do not depend on the scenario.
TEST(RunResourcesTest, LinksAreStored) {
  Result result = Simulated(Resolve(""));
  const size_t num_links = ResourcesOf(result).links.size();
  result.mutable_provenance()->clear_scenario();
  EXPECT_EQ(ResourcesOf(result).links.size(), num_links);
  EXPECT_TRUE(ResourcesOf(result).kernels.empty());
  result.mutable_link_use()->mutable_links(0)->add_utilization(-1);
  EXPECT_FALSE(results::ValidateResult("stored", result).ok());
  EXPECT_TRUE(ResourcesOf(result).links.empty());
}

// No flow is faster than its links.
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
  result.clear_link_use();
  result.mutable_provenance()->set_scenario("another { format }");
  const RunResources resources = ResourcesOf(result);
  EXPECT_TRUE(resources.links.empty());
  EXPECT_TRUE(resources.kernels.empty());
  const auto section = results::SharedLinksSection({&resources, 1});
  EXPECT_TRUE(section["runs"][0].is_null());
}

}  // namespace weir::plan::run_resources_test
