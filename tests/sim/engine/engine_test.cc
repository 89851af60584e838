// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/engine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/max_min.h"

namespace weir::sim::engine_test {

TEST(EngineTest, UncontendedFlowTakesLatencyPlusBytesOverBandwidth) {
  const std::vector<scenarios::Link> links = {{"tx", 25e9}, {"rx", 12.5e9}};
  TaskGraph graph;
  graph.pairs = {{0, 1, {{0, 1}, 1e-5}}};
  graph.AddFlow(0, 1e8);
  graph.Finish();
  const auto recording = RunTaskGraph(graph, links);
  ASSERT_TRUE(recording.ok()) << recording.status();
  EXPECT_NEAR(recording->end_seconds()[0], 1e-5 + 1e8 / 12.5e9, 1e-14);
}

TEST(EngineTest, LatencyDoesNotBiasTheSharing) {
  const std::vector<scenarios::Link> links = {{"shared", 25e9}, {"far", 100e9}};
  TaskGraph graph;
  graph.pairs = {{0, 1, {{0}, 1e-6}}, {2, 3, {{0, 1}, 11e-6}}};
  graph.AddFlow(0, 1e8);
  graph.AddFlow(1, 1e8);
  graph.Finish();
  const auto recording = RunTaskGraph(graph, links);
  ASSERT_TRUE(recording.ok()) << recording.status();
  // The far flow starts 10 us later and catches up when the near one is done.
  EXPECT_NEAR(recording->end_seconds()[0], 1e-6 + 8e-3 - 1e-5, 1e-11);
  EXPECT_NEAR(recording->end_seconds()[1], 1e-6 + 8e-3, 1e-11);
}

// The flow runs uncontended for 1 ms, then at half the rate concurrently with
// another.
TEST(EngineTest, AFlowSharesFromTheMomentItIsJoined) {
  const std::vector<scenarios::Link> links = {
      {"one", 1e9}, {"both", 1e9}, {"other", 1e9}};
  TaskGraph graph;
  graph.pairs = {{0, 1, {{0, 1}, 0}}, {2, 3, {{1, 2}, 4e-4}}};
  graph.AddFlow(0, 2e6);
  graph.AddTimer(6e-4);
  graph.AddFlow(1, 2e6);
  graph.AddFlow(1, 0);  // takes no bandwidth
  graph.AddFlow(0, 1e6);
  graph.AddEdge(1, 2);
  graph.AddEdge(0, 4);
  graph.Finish();
  const auto recording = RunTaskGraph(graph, links);
  ASSERT_TRUE(recording.ok()) << recording.status();
  EXPECT_NEAR(recording->end_seconds()[0], 3e-3, 1e-14);
  EXPECT_NEAR(recording->end_seconds()[2], 5e-3, 1e-14);
  EXPECT_NEAR(recording->end_seconds()[3], 4e-4, 1e-14);
  EXPECT_NEAR(recording->end_seconds()[4], 5e-3, 1e-14);
}

// A second flow joins on a link with enough bandwidth for both. SimGrid then
// ends the first flow, up to rounding, when it would have ended uncontended.
TEST(EngineTest, AFlowThatIsJoinedWithoutLossEndsOnce) {
  const std::vector<scenarios::Link> links = {{"slow", 1e9}, {"wide", 1e12}};
  std::mt19937 random(1);
  std::uniform_real_distribution<> uniform(0, 1);
  TaskGraph graph;
  graph.pairs = {{0, 1, {{0, 1}, 0}}, {2, 3, {{1}, 0}}};
  for (int i = 0; i < 1000; ++i) {
    const int32_t wait = graph.AddTimer(10 * i + uniform(random));
    const int32_t joins = graph.AddTimer(10 * i + 1 + uniform(random));
    graph.AddEdge(wait, graph.AddFlow(0, 2e9));
    graph.AddEdge(joins, graph.AddFlow(1, 1));
  }
  graph.Finish();
  const auto recording = RunTaskGraph(graph, links);
  ASSERT_TRUE(recording.ok()) << recording.status();
  EXPECT_EQ(recording->num_ended(), graph.num_tasks());
}

TEST(EngineTest, RunsInOneProcessDoNotDisturbEachOther) {
  TaskGraph graph;
  graph.AddTimer(1.23456789e-3);
  graph.AddTimer(0);
  graph.AddTimer(2);
  graph.AddEdge(0, 1);
  graph.AddEdge(1, 2);
  graph.Finish();
  for (int run = 0; run < 3; ++run) {
    const auto recording = RunTaskGraph(graph, {});
    ASSERT_TRUE(recording.ok()) << recording.status();
    EXPECT_TRUE(recording->complete());
    EXPECT_EQ(recording->end_seconds()[0], 1.23456789e-3);
    EXPECT_EQ(recording->end_seconds()[1], 1.23456789e-3);
    EXPECT_EQ(recording->end_seconds()[2], 1.23456789e-3 + 2);
  }
}

TEST(EngineTest, TasksThatWaitForEachOtherAreReported) {
  TaskGraph graph;
  graph.AddTimers(3);
  graph.AddEdge(0, 1);
  graph.AddEdge(1, 2);
  graph.AddEdge(2, 1);
  graph.Finish();
  const auto recording = RunTaskGraph(graph, {});
  ASSERT_TRUE(recording.ok()) << recording.status();
  EXPECT_FALSE(recording->complete());
  EXPECT_EQ(recording->end_seconds()[0], 0);
  EXPECT_TRUE(std::isnan(recording->end_seconds()[1]));
}

// Compares random flows over random overlapping routes, started at random
// times, with an independent progressive-filling solver.
TEST(EngineTest, ContendedFlowsShareMaxMinFairly) {
  std::mt19937 random(7);
  const auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution<>(low, high)(random);
  };
  for (int round = 0; round < 300; ++round) {
    std::vector<scenarios::Link> links(1 + random() % 6);
    for (size_t i = 0; i < links.size(); ++i) {
      links[i] = {"link" + std::to_string(i), uniform(1e9, 1e11)};
    }
    TaskGraph graph;
    std::vector<max_min::Flow> flows(1 + random() % 8);
    for (size_t i = 0; i < flows.size(); ++i) {
      max_min::Flow& flow = flows[i];
      for (size_t link = 0; link < links.size(); ++link) {
        if (random() % 2 == 0) flow.links.push_back(link);
      }
      if (flow.links.empty()) flow.links.push_back(random() % links.size());
      flow.ready_seconds = uniform(0, 1e-2);
      flow.latency_seconds = uniform(1e-7, 1e-4);
      flow.bytes = std::round(uniform(1, 1e9));
      const int32_t timer = graph.AddTimer(flow.ready_seconds);
      graph.pairs.push_back(
          {static_cast<int32_t>(2 * i),
           static_cast<int32_t>(2 * i + 1),
           {{flow.links.begin(), flow.links.end()}, flow.latency_seconds}});
      graph.AddEdge(timer, graph.AddFlow(i, flow.bytes));
    }
    graph.Finish();
    std::vector<double> capacities;
    for (const scenarios::Link& link : links)
      capacities.push_back(link.bytes_per_second);
    const std::vector<double> expected = max_min::EndSeconds(capacities, flows);
    const auto recording = RunTaskGraph(graph, links);
    ASSERT_TRUE(recording.ok()) << recording.status();
    for (size_t i = 0; i < flows.size(); ++i) {
      EXPECT_NEAR(recording->end_seconds()[2 * i + 1], expected[i],
                  1e-9 * expected[i])
          << "round " << round << " flow " << i;
    }
  }
}

}  // namespace weir::sim::engine_test
