// SPDX-License-Identifier: Apache-2.0
// Checks that running many graphs on one SimGrid instance equals running each
// in its own process.
#include "sim/engine/graph_runner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "tests/max_min.h"

namespace weir::sim::graph_runner_test {

struct Case {
  TaskGraph graph;
  std::vector<scenarios::Link> links;
};

class Cases {
 public:
  explicit Cases(int seed) : random_(seed) {}

  // Returns up to 12 pairs over up to 8 links, with routes that may use a link
  // several times, and up to 60 tasks. Every third case has slowdowns, and
  // every third of those has shared physical GPUs.
  Case Next() {
    Case made;
    for (int i = Int(1, 8); i > 0; --i) {
      made.links.push_back({"link" + std::to_string(i), Uniform(1e9, 2e10)});
    }
    const int num_gpus = Int(2, 6), num_pairs = Int(1, 12);
    for (int pair = 0; pair < num_pairs; ++pair) {
      GpuPair& added = made.graph.pairs.emplace_back();
      added.to = 1;
      if (Int(0, 1) == 0) added.route.latency_seconds = Uniform(0, 1e-3);
      for (int hop = Int(1, 5); hop > 0; --hop) {
        added.route.links.push_back(Int(0, std::ssize(made.links) - 1));
      }
    }
    AddTasks(num_pairs, &made.graph);
    if (Int(0, 2) == 0) AddSlowdowns(num_gpus, &made.graph);
    made.graph.Finish();
    return made;
  }

 private:
  int Int(int64_t low, int64_t high) {
    return static_cast<int>(
        std::uniform_int_distribution<int64_t>(low, high)(random_));
  }
  double Uniform(double low, double high) {
    return std::uniform_real_distribution<>(low, high)(random_);
  }

  void AddTasks(int num_pairs, TaskGraph* graph) {
    for (int task = Int(1, 60), i = 0; i < task; ++i) {
      if (Int(0, 1) == 0) {
        graph->AddTimer(Int(0, 9) == 0 ? 0 : Uniform(0, 1e-2));
      } else {
        graph->AddFlow(Int(0, num_pairs - 1), std::round(Uniform(0, 1e8)));
      }
      for (int before = 0; before < i; ++before) {
        if (Int(0, 7) == 0) graph->AddEdge(before, i);
      }
    }
  }

  void AddSlowdowns(int num_gpus, TaskGraph* graph) {
    Slowdowns& slowdowns = graph->slowdowns;
    const bool cards = Int(0, 2) == 0;
    slowdowns.timers.resize(graph->num_tasks());
    for (int task = 0; task < graph->num_tasks(); ++task) {
      if (!graph->is_timer(task)) continue;
      slowdowns.timers[task] = {Int(0, num_gpus - 1), cards ? Int(-1, 1) : -1,
                                Int(0, 3) > 0};
    }
    for (size_t pair = 0; pair < graph->pairs.size(); ++pair) {
      slowdowns.touches.push_back(
          {Int(0, 1) == 0 ? Mover::kKernels : Mover::kCopies,
           {Int(0, num_gpus - 1)}});
    }
    for (int gpu = 0; gpu < num_gpus; ++gpu) {
      slowdowns.factors.push_back({Uniform(1, 2), Uniform(1, 2)});
      if (cards) slowdowns.physical_gpu.push_back(gpu % 2);
    }
    if (!cards) return;
    slowdowns.curves = {{1, 1.5, 2}, {1, 1.2, 1.3}};
  }

  std::mt19937 random_;
};

void ExpectEqual(const Recording& actual, const Recording& expected) {
  const auto near = [](std::span<const double> a, std::span<const double> b) {
    ASSERT_EQ(a.size(), b.size());
    const double last = *std::max_element(b.begin(), b.end());
    for (size_t i = 0; i < a.size(); ++i) {
      ASSERT_NEAR(a[i], b[i], 1e-9 * last) << "task " << i;
    }
  };
  near(actual.start_seconds(), expected.start_seconds());
  near(actual.end_seconds(), expected.end_seconds());
  if (!expected.sharing_seconds().empty()) {
    near(actual.sharing_seconds(), expected.sharing_seconds());
  }
}

// RunTaskGraph may not run while a GraphRunner exists, so its runs come first.
TEST(GraphRunnerTest, AnyOrderOfGraphsEqualsRunsByThemselves) {
  Cases cases(1);
  std::vector<Case> graphs;
  std::vector<Recording> expected;
  for (int i = 0; i < 300; ++i) {
    graphs.push_back(cases.Next());
    auto recording = RunTaskGraph(graphs.back().graph, graphs.back().links);
    ASSERT_TRUE(recording.ok()) << recording.status();
    expected.push_back(*std::move(recording));
  }
  GraphRunner runner;
  std::mt19937 random(2);
  for (int i = 0; i < 900; ++i) {
    const size_t graph = i < 300 ? i : random() % graphs.size();
    SCOPED_TRACE(graph);
    const auto recording = runner.Run(graphs[graph].graph, graphs[graph].links);
    ASSERT_TRUE(recording.ok()) << recording.status();
    EXPECT_TRUE(recording->complete());
    ExpectEqual(*recording, expected[graph]);
    if (HasFailure()) return;
  }
}

// Bit-identical, even after hours of simulated time.
TEST(GraphRunnerTest, ThousandsOfRunsLaterEqualsTheFirst) {
  Cases cases(3);
  std::vector<Case> graphs;
  for (int i = 0; i < 100; ++i) graphs.push_back(cases.Next());
  // Two flows share a link for a minute.
  Case slow;
  slow.links = {{"slow", 1e6}};
  slow.graph.pairs = {{0, 1, {{0}, 0}}, {1, 0, {{0}, 0}}};
  for (int pair = 0; pair < 2; ++pair) slow.graph.AddFlow(pair, 3e7);
  slow.graph.Finish();

  GraphRunner runner;
  std::vector<Recording> first;
  for (int i = 0; i < 5000; ++i) {
    const Case& one = graphs[i % graphs.size()];
    auto recording = runner.Run(one.graph, one.links);
    ASSERT_TRUE(recording.ok()) << recording.status();
    ASSERT_TRUE(runner.Run(slow.graph, slow.links).ok());
    if (i < std::ssize(graphs)) {
      first.push_back(*std::move(recording));
      continue;
    }
    const auto expected = first[i % graphs.size()].end_seconds();
    const auto actual = recording->end_seconds();
    ASSERT_TRUE(std::equal(actual.begin(), actual.end(), expected.begin()))
        << "run " << i;
  }
}

TEST(GraphRunnerTest, GrowsWithItsGraphs) {
  GraphRunner runner;
  for (const int num_pairs : {1, 100, 1000, 2, 400}) {
    // Each pair uses a link of its own and one that all pairs share.
    Case made;
    made.links.push_back({"all", 1e9 * num_pairs});
    for (int pair = 0; pair < num_pairs; ++pair) {
      made.links.push_back({"own", 1e12});
      made.graph.pairs.push_back({0, 1, {{0, pair + 1}, 1e-6}});
      made.graph.AddFlow(pair, 1e6);
    }
    made.graph.Finish();
    const auto recording = runner.Run(made.graph, made.links);
    ASSERT_TRUE(recording.ok()) << recording.status();
    for (const double end : recording->end_seconds()) {
      ASSERT_NEAR(end, 1e-6 + 1e-3, 1e-12) << num_pairs;
    }
  }
}

// Uses more links than the initial capacity, most of them by a single pair: two
// pairs share a link, and each has another link of its own.
TEST(GraphRunnerTest, HasRoomForLinksOfOnePair) {
  GraphRunner runner;
  for (const int num_meetings : {200, 3, 800}) {
    Case made;
    std::vector<double> expected;
    for (int i = 0; i < num_meetings; ++i) {
      const double rate = 1e9 + 1e6 * i;
      const auto first = static_cast<int32_t>(made.links.size());
      for (const double one : {rate, 1e12, 1e12}) {
        made.links.push_back({"link", one});
      }
      for (const int own : {1, 2}) {
        made.graph.pairs.push_back({0, 1, {{first, first + own}, 0}});
        made.graph.AddFlow(2 * i + own - 1, 1e6);
        expected.push_back(2 * 1e6 / rate);
      }
    }
    made.graph.Finish();
    const auto recording = runner.Run(made.graph, made.links);
    ASSERT_TRUE(recording.ok()) << recording.status();
    for (size_t flow = 0; flow < expected.size(); ++flow) {
      ASSERT_NEAR(recording->end_seconds()[flow], expected[flow], 1e-12)
          << flow << " of " << num_meetings;
    }
  }
}

// Another flow uses the link once. Both have the same rate, so the link carries
// k + 1 times that rate.
TEST(GraphRunnerTest, ALinkNamedSeveralTimesCarriesAFlowAsOften) {
  GraphRunner runner;
  for (const int repeats : {1, 2, 6}) {
    const std::vector<scenarios::Link> links = {{"link", 1e9}, {"wide", 1e12}};
    TaskGraph graph;
    graph.pairs.resize(2);
    graph.pairs[0].route.links.assign(repeats, 0);
    graph.pairs[0].route.links.push_back(1);
    graph.pairs[1].route.links = {0};
    graph.AddFlow(0, 1e6);
    graph.AddFlow(1, 4e6);
    const int32_t alone = graph.AddFlow(0, 1e6);
    graph.AddEdge(1, alone);
    graph.Finish();
    const auto recording = runner.Run(graph, links);
    ASSERT_TRUE(recording.ok()) << recording.status();
    const double both = 1e-3 * (repeats + 1);
    EXPECT_NEAR(recording->end_seconds()[0], both, 1e-12);
    EXPECT_NEAR(recording->end_seconds()[1], both + 3e-3, 1e-12);
    EXPECT_NEAR(recording->end_seconds()[2], both + 3e-3 + 1e-3 * repeats,
                1e-12);
  }
}

TEST(GraphRunnerTest, RepeatedLinksShareMaxMinFairly) {
  std::mt19937 random(5);
  const auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution<>(low, high)(random);
  };
  GraphRunner runner;
  for (int round = 0; round < 300; ++round) {
    std::vector<scenarios::Link> links(1 + random() % 4);
    std::vector<double> capacities;
    for (scenarios::Link& link : links) {
      link.bytes_per_second = uniform(1e9, 1e10);
      capacities.push_back(link.bytes_per_second);
    }
    TaskGraph graph;
    std::vector<max_min::Flow> flows(2 + random() % 6);
    for (size_t i = 0; i < flows.size(); ++i) {
      max_min::Flow& flow = flows[i];
      for (int hop = 1 + static_cast<int>(random() % 6); hop > 0; --hop) {
        flow.links.push_back(random() % links.size());
      }
      flow.ready_seconds = uniform(0, 1e-2);
      flow.latency_seconds = uniform(0, 1e-4);
      flow.bytes = std::round(uniform(1, 1e8));
      GpuPair& pair = graph.pairs.emplace_back();
      pair.route = {{flow.links.begin(), flow.links.end()},
                    flow.latency_seconds};
      const int32_t ready = graph.AddTimer(flow.ready_seconds);
      graph.AddEdge(ready, graph.AddFlow(static_cast<int32_t>(i), flow.bytes));
    }
    graph.Finish();
    const std::vector<double> expected = max_min::EndSeconds(capacities, flows);
    const auto recording = runner.Run(graph, links);
    ASSERT_TRUE(recording.ok()) << recording.status();
    for (size_t i = 0; i < flows.size(); ++i) {
      ASSERT_NEAR(recording->end_seconds()[2 * i + 1], expected[i],
                  1e-9 * expected[i])
          << "round " << round << " flow " << i;
    }
  }
}

TEST(GraphRunnerTest, AGraphThatCannotCompleteLeavesItUsable) {
  GraphRunner runner;
  const std::vector<scenarios::Link> links = {{"link", 1e9}};
  for (const bool stuck : {true, false, true, false}) {
    TaskGraph graph;
    graph.pairs = {{0, 1, {{0}, 0}}, {1, 0, {{0}, 0}}};
    graph.AddFlow(0, 1e6);
    graph.AddFlow(1, 1e6);
    const int32_t waits = graph.AddFlow(0, 1e6);
    graph.AddTimer(1);
    graph.AddEdge(0, waits);
    graph.AddEdge(waits, 3);
    if (stuck) graph.AddEdge(3, waits);
    graph.Finish();
    const auto recording = runner.Run(graph, links);
    ASSERT_TRUE(recording.ok()) << recording.status();
    EXPECT_EQ(recording->complete(), !stuck);
    EXPECT_NEAR(recording->end_seconds()[1], 2e-3, 1e-12);
    EXPECT_EQ(std::isnan(recording->end_seconds()[waits]), stuck);
    if (stuck) continue;
    EXPECT_NEAR(recording->end_seconds()[3], 1.003, 1e-12);
  }
}

}  // namespace weir::sim::graph_runner_test
