// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/longest_path.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace weir::sim::longest_path_test {

using Links = std::vector<int32_t>;

TEST(LongestPathTest, FlowTakesLatencyPlusWholeBytesOverTheSlowestLink) {
  const std::vector<scenarios::Link> links = {{"fast", 100}, {"slow", 10}};
  TaskGraph graph;
  graph.pairs = {{0, 1, {{0, 1}, 0.5}}, {1, 2, {{0, 0, 0}, 0}}};
  const int32_t timer = graph.AddTimer(2);
  graph.AddEdge(timer, graph.AddFlow(0, 20.9));
  graph.AddFlow(1, 100);
  graph.Finish();
  const auto path = LongestPath(graph, links);
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(path->end_seconds()[1], 2 + 0.5 + 2);
  EXPECT_DOUBLE_EQ(path->end_seconds()[2], 3);
}

TEST(LongestPathTest, FlowsMeetOnlyWhileBytesOfBothAreOnALink) {
  const std::vector<scenarios::Link> links = {{"shared", 1}, {"own", 1}};
  TaskGraph graph;
  graph.pairs = {{0, 1, {{0}, 0}}, {2, 3, {{0, 1}, 2}}};
  graph.AddFlow(0, 2);
  graph.AddFlow(1, 1);  // in its latency while the other sends
  graph.Finish();
  auto path = LongestPath(graph, links);
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_TRUE(SharedLinks(graph, links, *path).empty());
  graph.pairs[1].route.latency_seconds = 1.9;
  path = LongestPath(graph, links);
  EXPECT_EQ(SharedLinks(graph, links, *path), Links{0});
}

TEST(LongestPathTest, TasksThatWaitForEachOtherAreReported) {
  TaskGraph graph;
  graph.AddTimers(3);
  graph.AddEdge(1, 2);
  graph.AddEdge(2, 1);
  graph.Finish();
  const auto path = LongestPath(graph, {});
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_FALSE(path->complete());
  EXPECT_EQ(path->end_seconds()[0], 0);
  EXPECT_TRUE(std::isnan(path->end_seconds()[1]));
}

TEST(LongestPathTest, TimersAreSlowedWhileFlowsThatMatterTouchTheirGpu) {
  const std::vector<scenarios::Link> links = {{"link", 1}};
  TaskGraph graph;
  graph.pairs = {{0, 1, {{0}, 0.5}}};
  const int32_t first = graph.AddTimer(1);
  graph.AddEdge(first, graph.AddFlow(0, 1));
  graph.AddTimer(1);
  graph.Finish();
  graph.slowdowns.timers = {{0, -1, true}, {}, {1, -1, true}};
  graph.slowdowns.touches = {{Mover::kKernels, {0, 1}}};
  graph.slowdowns.factors = {{2, 1}, {2, 1}};
  const auto path = LongestPath(graph, links);
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_FALSE(SlowsTimers(graph, *path));
  graph.slowdowns.timers[1] = {1, -1, true};  // as if it computed meanwhile
  EXPECT_TRUE(SlowsTimers(graph, *path));
  graph.slowdowns.factors = {{1, 2}, {1, 2}};  // slowed by copies only
  EXPECT_FALSE(SlowsTimers(graph, *path));
}

// For any graph without contention, SimGrid computes the same times.
TEST(LongestPathTest, EqualsTheEngineWhereNoTwoFlowsMeet) {
  std::mt19937 random(3);
  const auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution<>(low, high)(random);
  };
  int num_apart = 0, num_meeting = 0;
  for (int round = 0; round < 400; ++round) {
    std::vector<scenarios::Link> links(2 + random() % 6);
    for (scenarios::Link& link : links) link = {"link", uniform(1e9, 1e10)};
    TaskGraph graph;
    const int num_pairs = 1 + static_cast<int>(random() % 4);
    for (int pair = 0; pair < num_pairs; ++pair) {
      Links route;
      for (size_t link = 0; link < links.size(); ++link) {
        if (random() % 3 == 0) route.push_back(static_cast<int32_t>(link));
      }
      if (route.empty()) route.push_back(0);
      graph.pairs.push_back(
          {2 * pair, 2 * pair + 1, {route, uniform(0, 1e-3)}});
    }
    const int num_tasks = 2 + static_cast<int>(random() % 12);
    for (int task = 0; task < num_tasks; ++task) {
      if (random() % 2 == 0) {
        graph.AddTimer(uniform(0, 0.1));
      } else {
        graph.AddFlow(static_cast<int32_t>(random() % num_pairs),
                      std::round(uniform(1, 1e8)));
      }
      for (int before = 0; before < task; ++before) {
        if (random() % 3 == 0) graph.AddEdge(before, task);
      }
    }
    graph.Finish();
    const auto path = LongestPath(graph, links);
    ASSERT_TRUE(path.ok()) << path.status();
    if (!SharedLinks(graph, links, *path).empty()) {
      ++num_meeting;
      continue;
    }
    ++num_apart;
    const auto engine = RunTaskGraph(graph, links);
    ASSERT_TRUE(engine.ok()) << engine.status();
    for (int task = 0; task < num_tasks; ++task) {
      const double end = engine->end_seconds()[task];
      EXPECT_NEAR(path->end_seconds()[task], end, 1e-9 * end) << round;
    }
  }
  EXPECT_GT(num_apart, 100);
  EXPECT_GT(num_meeting, 50);
}

}  // namespace weir::sim::longest_path_test
