// SPDX-License-Identifier: Apache-2.0
#include "models/import/pipedream_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/files.h"
#include "models/layer_work.h"
#include "models/model.h"

namespace weir::models::pipedream_graph_test {

using testing::AllOf;
using testing::HasSubstr;

std::string Node(int number, absl::string_view forward = "1",
                 absl::string_view activation = "8") {
  return absl::StrCat("node", number,
                      " -- Conv(1, 2) -- forward_compute_time=", forward,
                      ", backward_compute_time=2, activation_size=", activation,
                      ", parameter_size=40\n");
}

std::vector<std::string> Names(const Model& model) {
  std::vector<std::string> names;
  for (const MeasuredLayer& layer : model.measured().layers()) {
    names.push_back(layer.name().substr(0, layer.name().find(' ')));
  }
  return names;
}

std::string Message(const std::string& text) {
  return std::string(ParseModel("g.txt", text).status().message());
}

TEST(PipeDreamGraphTest, ReadsANode) {
  const auto model = ParseModel("g.txt", Node(1, "12.5", "[9.0; 2; 1]"));
  ASSERT_TRUE(model.ok()) << model.status();
  const MeasuredLayer& layer = model->measured().layers(0);
  EXPECT_EQ(layer.name(), "node1 Conv(1, 2)");
  EXPECT_EQ(layer.forward_seconds(), 0.0125);
  EXPECT_EQ(layer.backward_seconds(), 0.002);
  EXPECT_EQ(layer.activation_bytes(), 12);
  EXPECT_EQ(layer.parameter_bytes(), 40);
  EXPECT_EQ(model->measured().microbatch_size(), 1u);
}

TEST(PipeDreamGraphTest, OrderFollowsEdgesAndThenNumbers) {
  // 1 -> 2 -> 10 -> 4, 1 -> 3 -> 4; written in another order.
  const auto model = ParseModel(
      "g.txt", absl::StrCat(Node(10), Node(4), Node(3), Node(2), Node(1),
                            "\tnode1 -- node2\n\tnode1 -- node3\n"
                            "\tnode2 -- node10\n\tnode10 -- node4\n"
                            "\tnode3 -- node4"));
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(Names(*model), testing::ElementsAre("node1", "node2", "node3",
                                                  "node10", "node4"));
}

TEST(PipeDreamGraphTest, CutsCarryEveryOutputStillToBeRead) {
  // A residual connection: node1 feeds node2 and node3.
  const auto model = ParseModel(
      "g.txt",
      absl::StrCat(Node(1, "1", "100"), Node(2, "1", "10"), Node(3, "1", "1"),
                   "\tnode1 -- node2\n\tnode2 -- node3\n\tnode1 -- node3\n"));
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->measured().layers(0).cut_bytes(), 100);
  EXPECT_EQ(model->measured().layers(1).cut_bytes(), 110);
  EXPECT_EQ(model->measured().layers(2).cut_bytes(), 0);
}

TEST(PipeDreamGraphTest, AcceptsLineEndsBlanksAndStages) {
  const auto model = ParseModel(
      "g.txt",
      "node1 -- a -- forward_compute_time=1, backward_compute_time=1, "
      "activation_size=1, parameter_size=1 -- stage_id=0\r\n\r\n"
      "node2 -- b -- c -- forward_compute_time=1, backward_compute_time=1, "
      "activation_size=1, parameter_size=1 \r\n\tnode1 -- node2\r\n");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->measured().layers(1).name(), "node2 b -- c");
}

TEST(PipeDreamGraphTest, AllProblemsComeAtOnceWithTheirLines) {
  const std::string message = Message(absl::StrCat(
      Node(1), Node(1), Node(2, "fast"), Node(3, "nan"), Node(4, "-1"),
      Node(5, "1", "[1; x]"), "node6 -- lost\n", "\tnode1 -- node99\n",
      "\tnode1 node2\n", Node(7, "1e400"),
      "node8 -- c -- forward_compute_time=1, backward_compute_time=1\n"));
  EXPECT_THAT(
      message,
      AllOf(HasSubstr("g.txt: line 2: node1 is defined a second time"),
            HasSubstr("line 3: forward_compute_time is \"fast\", expected a "
                      "number"),
            HasSubstr("line 4: forward_compute_time is \"nan\""),
            HasSubstr("line 5: forward_compute_time is \"-1\""),
            HasSubstr("line 6: activation_size is \"[1; x]\""),
            HasSubstr("line 7: found \"node6 -- lost\", expected nodeK"),
            HasSubstr("line 8: node99 is not defined"),
            HasSubstr("line 9: found \"node1 node2\", expected nodeA")));
  EXPECT_THAT(message,
              AllOf(HasSubstr("line 10: forward_compute_time is \"1e400\""),
                    HasSubstr("line 11: activation_size is missing"),
                    HasSubstr("line 11: parameter_size is missing")));
}

TEST(PipeDreamGraphTest, CycleIsNamedWithALineOfIt) {
  const std::string message = Message(absl::StrCat(
      Node(1), Node(2), Node(3), Node(4), "\tnode1 -- node2\n",
      "\tnode2 -- node3\n", "\tnode3 -- node2\n", "\tnode3 -- node4\n"));
  EXPECT_THAT(message, HasSubstr("closes a cycle: "));
  EXPECT_THAT(message,
              testing::AnyOf(HasSubstr("line 6:"), HasSubstr("line 7:")));
  EXPECT_THAT(message, testing::AnyOf(HasSubstr("node2 -- node3 -- node2"),
                                      HasSubstr("node3 -- node2 -- node3")));
  EXPECT_THAT(Message(absl::StrCat(Node(1), "\tnode1 -- node1\n")),
              HasSubstr("line 2: closes a cycle: node1 -- node1"));
}

TEST(PipeDreamGraphTest, InputNodesTakeNoTimeButKeepTheirActivation) {
  const auto model = ParsePipeDreamGraph(
      "g",
      "node1 -- Input0 -- forward_compute_time=3.0, "
      "backward_compute_time=5.0, activation_size=8.0, parameter_size=0.0\n"
      "node2 -- Add(Input) -- forward_compute_time=1.0, "
      "backward_compute_time=2.0, activation_size=4.0, parameter_size=0.0\n"
      "\tnode1 -- node2\n");
  ASSERT_TRUE(model.ok()) << model.status();
  const MeasuredLayer& input = model->measured().layers(0);
  EXPECT_EQ(input.forward_seconds(), 0);
  EXPECT_EQ(input.backward_seconds(), 0);
  EXPECT_EQ(input.activation_bytes(), 8);
  EXPECT_EQ(input.cut_bytes(), 8);
  EXPECT_EQ(model->measured().layers(1).forward_seconds(), 1e-3);
  EXPECT_EQ(model->measured().layers(1).backward_seconds(), 2e-3);
}

// Returns the sum of a field over all nodes. The totals of a profile are such
// sums.
double SumOf(const std::string& text, const std::string& key) {
  double sum = 0;
  const std::string start = key + "=";
  for (size_t at = text.find(start); at != std::string::npos;
       at = text.find(start, at + 1)) {
    sum += std::strtod(text.c_str() + at + start.size(), nullptr);
  }
  return sum;
}

void CheckProfile(const std::string& path) {
  const std::string whole = *ReadFile(path);
  const std::vector<std::string> lines = absl::StrSplit(whole, '\n');
  // Data loading takes no GPU time.
  std::string text;
  for (const std::string& line : lines) {
    if (!absl::StrContains(line, " -- Input")) absl::StrAppend(&text, line);
  }
  const auto model = LoadModel(path);
  ASSERT_TRUE(model.ok()) << model.status();
  double forward = 0, backward = 0, parameters = 0;
  for (const LayerWork& layer : LayersOf(*model, WorkSpec())) {
    forward += *layer.forward_seconds;
    backward += *layer.backward_seconds;
    parameters += layer.parameters;
    EXPECT_GE(layer.output_bytes, 0);
  }
  EXPECT_NEAR(forward * 1e3 / SumOf(text, "forward_compute_time"), 1, 1e-9);
  EXPECT_NEAR(backward * 1e3 / SumOf(text, "backward_compute_time"), 1, 1e-9);
  EXPECT_NEAR(parameters * 4 / SumOf(text, "parameter_size"), 1, 1e-9);
  EXPECT_EQ(model->measured().layers_size(),
            std::count_if(lines.begin(), lines.end(), [](const auto& line) {
              return line.rfind("node", 0) == 0;
            }));
}

TEST(PipeDreamGraphTest, PublishedProfilesKeepTheirTotals) {
  int num_profiles = 0;
  for (const auto& entry : std::filesystem::directory_iterator(
           WEIR_SOURCE_DIR "/results/published/graphs")) {
    SCOPED_TRACE(entry.path().string());
    CheckProfile(entry.path().string());
    ++num_profiles;
  }
  EXPECT_EQ(num_profiles, 8);
}

}  // namespace weir::models::pipedream_graph_test
