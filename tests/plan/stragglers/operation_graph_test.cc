// SPDX-License-Identifier: Apache-2.0
// Checks replays of graphs of operations, and slack by moving every operation.
#include "plan/stragglers/operation_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace weir::plan::operation_graph_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// 0 -> 1 -> 3, 0 -> 2 -> 3
OperationGraph Diamond() {
  OperationGraph graph(4);
  graph.AddDependency(0, 1);
  graph.AddDependency(0, 2);
  graph.AddDependency(1, 3);
  graph.AddDependency(2, 3);
  return graph;
}

TEST(OperationGraphTest, OperationsStartAfterTheirDependencies) {
  OperationGraph graph = Diamond();
  ASSERT_TRUE(graph.Finish().ok());
  OperationGraph::Times times;
  graph.Run(std::vector<double>{1, 2, 5, 1}, {}, &times);
  EXPECT_THAT(times.launch, ElementsAre(0, 1, 1, 6));
  EXPECT_THAT(times.end, ElementsAre(1, 3, 6, 7));
  EXPECT_EQ(times.makespan, 7);
  EXPECT_THAT(graph.Slack(std::vector<double>{1, 2, 5, 1}, {}, times),
              ElementsAre(0, 3, 0, 0));
}

TEST(OperationGraphTest, GroupsBeginTogether) {
  OperationGraph graph = Diamond();
  graph.AddGroup({1, 2});
  ASSERT_TRUE(graph.Finish().ok());
  OperationGraph::Times times;
  const std::vector<double> seconds = {1, 2, 3, 1}, delays = {0, 4, 0, 0};
  graph.Run(seconds, delays, &times);
  EXPECT_THAT(times.launch, ElementsAre(0, 5, 1, 8));
  EXPECT_THAT(times.end, ElementsAre(1, 7, 8, 9));
  EXPECT_THAT(graph.Slack(seconds, delays, times), ElementsAre(0, 1, 0, 0));
}

TEST(OperationGraphTest, CyclesAreRefused) {
  OperationGraph graph = Diamond();
  graph.AddDependency(3, 1);
  EXPECT_THAT(std::string(graph.Finish().message()),
              HasSubstr("2 of 4 operations wait for each other"));
  OperationGraph through_a_group = Diamond();
  through_a_group.AddGroup({0, 3});
  EXPECT_FALSE(through_a_group.Finish().ok());
}

TEST(OperationGraphTest, NoOperationsTakeNoTime) {
  OperationGraph graph(0);
  ASSERT_TRUE(graph.Finish().ok());
  OperationGraph::Times times;
  graph.Run({}, {}, &times);
  EXPECT_EQ(times.makespan, 0);
}

// Prolonging an operation by its slack changes nothing; by more, the step ends
// as much later.
TEST(OperationGraphTest, SlackIsWhatAnOperationCanBeProlonged) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> uniform(0, 1);
  for (int round = 0; round < 50; ++round) {
    const int n = 40;
    OperationGraph graph(n);
    for (int after = 1; after < n; ++after) {
      for (int k = 0; k < 2; ++k) {
        graph.AddDependency(static_cast<int>(random() % after), after);
      }
    }
    // Neighbors without a path between them may form a group.
    OperationGraph::Times times;
    std::vector<double> seconds, delays;
    for (int i = 0; i < n; ++i) {
      seconds.push_back(uniform(random));
      delays.push_back(round % 2 == 0 ? 0 : 0.1 * uniform(random));
    }
    ASSERT_TRUE(graph.Finish().ok());
    graph.Run(seconds, delays, &times);
    const double makespan = times.makespan;
    const std::vector<double> slack = graph.Slack(seconds, delays, times);
    EXPECT_EQ(*std::min_element(slack.begin(), slack.end()), 0);
    for (int i = 0; i < n; ++i) {
      for (const double more : {0.0, 0.25}) {
        std::vector<double> longer = seconds;
        longer[i] += slack[i] + more;
        graph.Run(longer, delays, &times);
        EXPECT_NEAR(times.makespan, makespan + more, 1e-9 * makespan);
      }
    }
  }
}

}  // namespace
}  // namespace weir::plan::operation_graph_test
