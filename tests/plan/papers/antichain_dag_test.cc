// SPDX-License-Identifier: Apache-2.0
#include "plan/papers/antichain_dag.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace weir::plan::antichain_dag_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

using Edges = std::vector<std::pair<int, int>>;

// Node i takes i ms for its forward and has i bytes of activations and 10 i of
// parameters.
models::ProfileGraph GraphOf(const std::vector<std::string>& names,
                             const Edges& edges) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    absl::StrAppend(&text, "node", i + 1, " -- ", names[i],
                    " -- forward_compute_time=", i + 1,
                    ", backward_compute_time=0, activation_size=", i + 1,
                    ", parameter_size=", 10 * (i + 1), "\n");
  }
  for (const auto& [from, to] : edges) {
    absl::StrAppend(&text, "\tnode", from, " -- node", to, "\n");
  }
  return *models::ParseProfileGraph("graph", text);
}

std::vector<std::vector<int>> NodesOf(const AntichainDag& dag) {
  std::vector<std::vector<int>> nodes;
  for (const AntichainState& state : dag.states) nodes.push_back(state.nodes);
  return nodes;
}

TEST(AntichainDagTest, AChainHasAStatePerNode) {
  const auto dag =
      AntichainDagOf("g", GraphOf({"A", "B", "C"}, {{1, 2}, {2, 3}}));
  ASSERT_TRUE(dag.ok());
  EXPECT_THAT(NodesOf(*dag),
              ElementsAre(std::vector<int>{0}, std::vector<int>{0, 1},
                          std::vector<int>{0, 1, 2}));
  EXPECT_DOUBLE_EQ(dag->states[2].compute_seconds, 0.006);
  EXPECT_DOUBLE_EQ(dag->states[2].parameter_bytes, 60);
  EXPECT_DOUBLE_EQ(dag->states[1].output_bytes, 2);
  EXPECT_THAT(dag->predecessors[2], ElementsAre(0, 1));
}

TEST(AntichainDagTest, BranchesAreCutTogetherAndApart) {
  const auto dag = AntichainDagOf(
      "g", GraphOf({"A", "B", "C", "D"}, {{1, 2}, {1, 3}, {2, 4}, {3, 4}}));
  ASSERT_TRUE(dag.ok());
  EXPECT_THAT(
      NodesOf(*dag),
      UnorderedElementsAre(std::vector<int>{0}, std::vector<int>{0, 1},
                           std::vector<int>{0, 2}, std::vector<int>{0, 1, 2},
                           std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(dag->states.back().nodes.size(), 4u);
  EXPECT_EQ(dag->predecessors.back().size(), 4u);
  for (const AntichainState& state : dag->states) {
    // After A and B, the output of A is still read by C.
    if (state.nodes == std::vector<int>{0, 1}) {
      EXPECT_DOUBLE_EQ(state.output_bytes, 1 + 2);
    }
  }
}

TEST(AntichainDagTest, InputsAndUnusedElementsDoNotCount) {
  const auto dag =
      AntichainDagOf("g", GraphOf({"Input0", "Conv", "LSTM", "__getitem__(1)"},
                                  {{1, 2}, {2, 3}, {3, 4}}));
  ASSERT_TRUE(dag.ok());
  EXPECT_THAT(NodesOf(*dag),
              ElementsAre(std::vector<int>{1}, std::vector<int>{1, 2}));
  EXPECT_DOUBLE_EQ(dag->states.back().compute_seconds, 0.005);
  EXPECT_THAT(dag->input_nodes, ElementsAre(0));
}

// As with the embeddings of GNMT's decoder, no path leads to them from the
// first source.
TEST(AntichainDagTest, OtherSourcesComeWithTheirReaders) {
  const auto dag = AntichainDagOf(
      "g", GraphOf({"Embedding", "Embedding", "Add"}, {{1, 3}, {2, 3}}));
  ASSERT_TRUE(dag.ok());
  EXPECT_THAT(NodesOf(*dag),
              ElementsAre(std::vector<int>{0}, std::vector<int>{0, 1, 2}));
}

TEST(AntichainDagTest, NodesThatNoEdgeJoinsAreNamed) {
  const auto dag =
      AntichainDagOf("g", GraphOf({"A", "B", "C", "D"}, {{1, 2}, {3, 4}}));
  ASSERT_TRUE(dag.ok());
  EXPECT_THAT(dag->states.back().nodes, ElementsAre(0, 1));
  EXPECT_THAT(dag->unreached_nodes, ElementsAre(2, 3));
  EXPECT_THAT(
      AntichainDagOf("g", GraphOf({"A", "B"}, {{1, 2}}))->unreached_nodes,
      ElementsAre());
}

TEST(AntichainDagTest, RefusesWhatBranchesWithoutEnd) {
  std::vector<std::string> names(32, "Conv");
  Edges edges;
  for (int i = 2; i <= 31; ++i) {
    edges.emplace_back(1, i);
    edges.emplace_back(i, 32);
  }
  const auto dag = AntichainDagOf("wide.txt", GraphOf(names, edges), 1000);
  EXPECT_THAT(std::string(dag.status().message()),
              HasSubstr("wide.txt: has more than 1000 antichains"));
  EXPECT_EQ(AntichainDagOf("g", GraphOf({"Input0"}, {})).status().message(),
            "g: has no node with compute time, expected at least one");
}

TEST(AntichainDagTest, EmbeddingAndHeadStayWithTheBlocksBesideThem) {
  PlannerWork work;
  work.layers.resize(5);
  work.layers.front().is_block = work.layers.back().is_block = false;
  EXPECT_THAT(NodesOf(AntichainDagOf(work)),
              ElementsAre(std::vector<int>{0, 1}, std::vector<int>{0, 1, 2},
                          std::vector<int>{0, 1, 2, 3, 4}));
}

}  // namespace weir::plan::antichain_dag_test
