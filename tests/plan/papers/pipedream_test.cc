// SPDX-License-Identifier: Apache-2.0
#include "plan/papers/pipedream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/csv.h"
#include "base/files.h"
#include "models/import/pipedream_graph.h"
#include "plan/papers/pipedream_level.h"

namespace weir::plan::pipedream_test {

using testing::HasSubstr;

const std::filesystem::path kPublished =
    std::filesystem::path(WEIR_SOURCE_DIR) / "results/published";

absl::StatusOr<AntichainDag> DagOfFile(const std::string& profile) {
  const auto text = ReadFile(kPublished / "graphs" /
                             absl::StrCat("pipedream-", profile, ".txt"));
  if (!text.ok()) return text.status();
  const auto graph = models::ParseProfileGraph(profile, *text);
  if (!graph.ok()) return graph.status();
  return AntichainDagOf(profile, *graph);
}

// The stages of each level, from the lowest.
using Levels = std::vector<std::vector<PipeDreamStage>>;

// Parses "0-8x3 8-40x1|0-40x2": levels of stages, each with its first state,
// the state after its last one, and its replicas.
Levels ParseLevels(const std::string& text) {
  Levels levels;
  for (const absl::string_view level : absl::StrSplit(text, '|')) {
    std::vector<PipeDreamStage>& stages = levels.emplace_back();
    for (const absl::string_view stage : absl::StrSplit(level, ' ')) {
      const std::vector<std::string> numbers =
          absl::StrSplit(stage, absl::ByAnyChar("-x"));
      stages.emplace_back();
      stages.back().first_state = std::stoi(numbers.at(0));
      stages.back().end_state = std::stoi(numbers.at(1));
      stages.back().replicas = std::stoi(numbers.at(2));
    }
  }
  return levels;
}

// Returns the time of the slowest stage, by the formulas of the header. The
// stages of each level are cut further by the next lower level.
double SlowestOf(const AntichainDag& dag, const PipeDreamOptions& options,
                 const Levels& levels) {
  const int num_states = static_cast<int>(dag.states.size());
  // [first, end) -> seconds on all machines of the lower level.
  std::map<std::pair<int, int>, double> below;
  for (size_t level = 0; level < levels.size(); ++level) {
    const double rate = options.bytes_per_second[level];
    std::map<std::pair<int, int>, double> here;
    std::vector<std::pair<int, int>> wholes = {{0, num_states}};
    if (level + 1 < levels.size()) {
      wholes.clear();
      for (const PipeDreamStage& stage : levels[level + 1]) {
        wholes.emplace_back(stage.first_state, stage.end_state);
      }
    }
    for (const auto& [from, to] : wholes) {
      double& slowest = here[{from, to}];
      for (const PipeDreamStage& stage : levels[level]) {
        const int first = stage.first_state, end = stage.end_state;
        const int r = stage.replicas;
        if (first < from || end > to) continue;
        const double compute = level > 0 ? below.at({first, end})
                                         : ComputeSeconds(dag, first, end - 1);
        double reduction =
            4 * (r - 1) * ParameterBytes(dag, first, end - 1) / (rate * r);
        // The published code divides the reduction of an uncut stage.
        if (first == from && level > 0) {
          reduction /= options.num_machines[level - 1];
        }
        slowest = std::max(slowest, (compute + reduction) / r);
        if (!options.activation_compression_ratio.has_value()) continue;
        if (first > from) {
          slowest = std::max(
              slowest, 2 * dag.states[first - 1].output_bytes / (rate * r));
        }
        if (first > from && end < num_states) {
          slowest = std::max(slowest,
                             2 * dag.states[end - 1].output_bytes / (rate * r));
        }
      }
    }
    below = here;
  }
  return below.at({0, num_states});
}

// Returns a plan's levels in the format of ParseLevels.
std::string LevelsOf(const PipeDreamPlan& plan) {
  return absl::StrJoin(
      plan.levels, "|", [](std::string* out, const auto& level) {
        absl::StrAppend(
            out,
            absl::StrJoin(level, " ", [](std::string* text, const auto& s) {
              absl::StrAppend(text, s.first_state, "-", s.end_state, "x",
                              s.replicas);
            }));
      });
}

// Compares with what PipeDream's own optimizer printed for these profiles.
TEST(PipeDreamTest, EqualsEveryPublishedRun) {
  const std::string path = kPublished / "planners/pipedream_optimizer.csv";
  const auto text = ReadFile(path);
  ASSERT_TRUE(text.ok()) << text.status();
  const auto table = ReadCsv(path, *text);
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_EQ(table->num_rows(), 57);
  const auto field = [&](const char* column, int row) {
    return table->Column(column)->Text(row);
  };
  const auto words = [&](const char* column, int row) {
    return std::vector<std::string>(absl::StrSplit(field(column, row), ' '));
  };
  for (int row = 0; row < table->num_rows(); ++row) {
    SCOPED_TRACE(absl::StrCat("row ", row + 1));
    const auto dag = DagOfFile(field("profile", row));
    ASSERT_TRUE(dag.ok()) << dag.status();
    PipeDreamOptions options;
    for (const std::string& machines : words("num_machines", row)) {
      options.num_machines.push_back(std::stoi(machines));
    }
    for (const std::string& rate : words("bytes_per_second", row)) {
      options.bytes_per_second.push_back(std::stod(rate));
    }
    const std::string ratio = field("activation_compression_ratio", row);
    if (!ratio.empty()) options.activation_compression_ratio = std::stod(ratio);
    options.straight = field("straight", row) == "yes";
    const auto plan = OptimizePipeDream("run", *dag, options);
    ASSERT_TRUE(plan.ok()) << plan.status();
    const Levels levels = ParseLevels(field("levels", row));
    const double expected = std::stod(field("pipeline_seconds", row));
    const double single = std::stod(field("single_stage_seconds", row));
    EXPECT_NEAR(plan->pipeline_seconds, expected, 1e-12);
    EXPECT_EQ(absl::StrCat(plan->num_states), field("num_states", row));
    EXPECT_NEAR(plan->single_stage_seconds, single, 1e-12);
    EXPECT_EQ(plan->levels.size(), levels.size());
    // The published code breaks ties between splits at random, so checks only
    // that its split is as good.
    EXPECT_NEAR(SlowestOf(*dag, options, levels), expected, 1e-12);
    EXPECT_NEAR(SlowestOf(*dag, options, plan->levels), expected, 1e-12);
  }
}

// Tries every way to cut states [first, end) into stages on `machines` of a
// level, with the stages of lower levels again cut in every way.
double BruteForce(const AntichainDag& dag, const PipeDreamOptions& options,
                  int level, int first, int end, int machines) {
  if (level < 0) return ComputeSeconds(dag, first, end - 1);
  const int below = level > 0 ? options.num_machines[level - 1] : 1;
  const double rate = options.bytes_per_second[level];
  const auto inner = [&](int from, int to) {
    return BruteForce(dag, options, level - 1, from, to, below);
  };
  double best = std::numeric_limits<double>::infinity();
  if (!options.straight || machines == 1) {
    const double reduction = 4 * (machines - 1) *
                             ParameterBytes(dag, first, end - 1) /
                             (rate * machines);
    best = (inner(first, end) + reduction / below) / machines;
  }
  for (int cut = first + 1; cut < end; ++cut) {
    for (int r = 1; r < machines && (r == 1 || !options.straight); ++r) {
      const double reduction =
          4 * (r - 1) * ParameterBytes(dag, cut, end - 1) / (rate * r);
      double slowest =
          std::max(BruteForce(dag, options, level, first, cut, machines - r),
                   (inner(cut, end) + reduction) / r);
      const double ratio = options.activation_compression_ratio.value_or(0);
      const auto transfer = [&](int state) {
        return 2 * dag.states[state].output_bytes / rate / r / ratio;
      };
      if (ratio > 0) slowest = std::max(slowest, transfer(cut - 1));
      if (ratio > 0 && end < std::ssize(dag.states)) {
        slowest = std::max(slowest, transfer(end - 1));
      }
      best = std::min(best, slowest);
    }
  }
  return best;
}

PlannerWork RandomChain(int num_layers, std::mt19937* random) {
  std::uniform_real_distribution<double> any(0.5, 3);
  PlannerWork work;
  for (int i = 0; i < num_layers; ++i) {
    PlannerLayer layer;
    layer.name = absl::StrCat("layer", i);
    layer.forward_seconds = any(*random);
    layer.backward_seconds = any(*random);
    layer.parameter_bytes = any(*random);
    layer.output_bytes = any(*random);
    layer.activation_bytes = any(*random);
    work.layers.push_back(layer);
  }
  return work;
}

TEST(PipeDreamTest, EqualsBruteForceOnRandomChains) {
  std::mt19937 random(5);
  const std::vector<std::vector<int>> shapes = {
      {1}, {3}, {5}, {2, 2}, {3, 2}, {2, 1, 2}, {2, 2, 2}};
  for (int i = 0; i < 300; ++i) {
    const AntichainDag dag = AntichainDagOf(RandomChain(1 + i % 6, &random));
    PipeDreamOptions options;
    options.num_machines = shapes[random() % shapes.size()];
    for (size_t level = 0; level < options.num_machines.size(); ++level) {
      options.bytes_per_second.push_back(1 + random() % 5);
    }
    options.straight = random() % 3 == 0;
    if (random() % 2 == 0) options.activation_compression_ratio = 1.5;
    const double expected = BruteForce(
        dag, options, static_cast<int>(options.num_machines.size()) - 1, 0,
        static_cast<int>(dag.states.size()), options.num_machines.back());
    const auto plan = OptimizePipeDream("chain", dag, options);
    ASSERT_EQ(plan.ok(), !std::isinf(expected)) << plan.status();
    if (!plan.ok()) continue;
    EXPECT_NEAR(plan->pipeline_seconds, expected, 1e-12);
  }
}

// Returns 4 states of 1 s with 8 bytes of parameters each.
AntichainDag EqualStates() {
  PlannerWork work;
  PlannerLayer layer;
  layer.backward_seconds = 1;
  layer.parameter_bytes = 8;
  layer.output_bytes = 2;
  layer.activation_bytes = 10;
  work.layers.assign(4, layer);
  return AntichainDagOf(work);
}

PipeDreamOptions Machines(int num_machines) {
  PipeDreamOptions options;
  options.num_machines = {num_machines};
  options.bytes_per_second = {8};
  return options;
}

TEST(PipeDreamTest, ThePapersFormulaTakesTheLargerOfComputationAndReduction) {
  PipeDreamOptions options = Machines(2);
  // Two stages of 2 s each; replicated: (4 + 4 x 32 / 16) / 2.
  EXPECT_DOUBLE_EQ(
      OptimizePipeDream("", EqualStates(), options)->pipeline_seconds, 2);
  options.bytes_per_second = {64};
  options.paper_formula = true;
  // Replicated, max(4, 2 x 32 / 64) / 2 is equally good.
  EXPECT_DOUBLE_EQ(
      OptimizePipeDream("", EqualStates(), options)->pipeline_seconds, 2);
  options = Machines(3);
  options.bytes_per_second = {64};
  // The sum: stages of 1 s, and of 3 s + 4 x 24 / 128 on two machines.
  EXPECT_DOUBLE_EQ(
      OptimizePipeDream("", EqualStates(), options)->pipeline_seconds,
      (4 + 4 * 2 * 32 / (64.0 * 3)) / 3);
  options.paper_formula = true;
  EXPECT_DOUBLE_EQ(
      OptimizePipeDream("", EqualStates(), options)->pipeline_seconds, 4.0 / 3);
}

// 4 s of computation and 32 bytes of parameters: two machines of a node reduce
// 4 (m - 1) / m of the bytes at 8 bytes/s, then three nodes at 2 bytes/s.
TEST(PipeDreamTest, DataParallelismReducesLevelByLevel) {
  PipeDreamOptions options;
  options.num_machines = {2, 3};
  options.bytes_per_second = {8, 2};
  const auto plan = OptimizePipeDream("", EqualStates(), options);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const double node = (4 + 4 * 1 * 32 / (8.0 * 2)) / 2;
  EXPECT_DOUBLE_EQ(plan->data_parallel_seconds,
                   (node + 4 * 2 * 32 / (2.0 * 3) / 2) / 3);
}

TEST(PipeDreamTest, MemoryCountsMinibatchesUnderWay) {
  PipeDreamOptions options = Machines(2);
  // The first of two stages keeps ceil((2 - 1) / 1) minibatch of 2 states.
  options.memory_limit_bytes = 36;
  EXPECT_DOUBLE_EQ(
      OptimizePipeDream("", EqualStates(), options)->pipeline_seconds, 2);
  options.published_memory = true;
  options.memory_limit_bytes = 35;
  EXPECT_DOUBLE_EQ(
      OptimizePipeDream("", EqualStates(), options)->pipeline_seconds, 3);
  options.memory_limit_bytes = 17;
  // With data parallelism on both, the published formula keeps none.
  EXPECT_EQ(OptimizePipeDream("", EqualStates(), options)->stages.size(), 1u);
  options.published_memory = false;
  for (bool straight : {false, true}) {
    options.straight = straight;
    const auto none = OptimizePipeDream("f", EqualStates(), options);
    EXPECT_EQ(none.status(),
              absl::FailedPreconditionError(
                  "f: nothing fits 17 B: the smallest plan found needs 36 B: "
                  "raise --memory-limit to 36 bytes"));
  }
}

// The reported limit is the smallest with a plan, also with several levels.
TEST(PipeDreamTest, TheSmallestPlanIsThatOfTheLeastLimit) {
  std::mt19937 random(11);
  int num_named = 0;
  for (int i = 0; i < 200; ++i) {
    const AntichainDag dag = AntichainDagOf(RandomChain(2 + i % 5, &random));
    PipeDreamOptions options;
    options.num_machines =
        i % 2 == 0 ? std::vector<int>{3} : std::vector<int>{2, 2};
    options.bytes_per_second.assign(options.num_machines.size(), 3);
    options.straight = i % 3 == 0 && dag.states.size() > 4;
    options.fewer_machines = i % 5 == 0;
    // No plan fits this limit; the error names the smallest sufficient one.
    options.memory_limit_bytes = 1e-3;
    const auto none = OptimizePipeDream("f", dag, options);
    ASSERT_EQ(none.status().code(), absl::StatusCode::kFailedPrecondition);
    const std::string message(none.status().message());
    const std::string before = "raise --memory-limit to ";
    const size_t at = message.find(before);
    ASSERT_NE(at, std::string::npos) << message;
    // Whole bytes, rounded up.
    const double named = std::stod(message.substr(at + before.size()));
    options.memory_limit_bytes = named;
    EXPECT_TRUE(OptimizePipeDream("f", dag, options).ok()) << message;
    options.memory_limit_bytes = named - 1;
    if (named <= 1) continue;
    ++num_named;
    EXPECT_FALSE(OptimizePipeDream("f", dag, options).ok()) << message;
  }
  EXPECT_GT(num_named, 100);
}

TEST(PipeDreamTest, FewerMachinesAreTakenWhereMoreAreSlower) {
  PipeDreamOptions options = Machines(8);
  options.bytes_per_second = {0.1};
  const auto all = OptimizePipeDream("", EqualStates(), options);
  options.fewer_machines = true;
  const auto fewer = OptimizePipeDream("", EqualStates(), options);
  EXPECT_DOUBLE_EQ(fewer->pipeline_seconds, 1);
  EXPECT_GT(all->pipeline_seconds, 1);
  EXPECT_EQ(fewer->stages.size(), 4u);
}

// Returns blocks of two parallel branches, one with one node and one with two.
AntichainDag Branches(int num_blocks) {
  std::string text;
  const auto node = [&](int i) {
    absl::StrAppend(&text, "node", i, " -- L", i,
                    " -- forward_compute_time=", 1 + i % 7,
                    ".0, backward_compute_time=", 2 + i % 5,
                    ".0, activation_size=", 100 + i % 11,
                    ".0, parameter_size=", 1000 + i % 13, ".000\n");
  };
  for (int i = 0; i <= 4 * num_blocks; ++i) node(i);
  for (int i = 0; i < 4 * num_blocks; i += 4) {
    for (const auto& [from, to] : std::vector<std::pair<int, int>>{
             {0, 1}, {0, 2}, {2, 3}, {1, 4}, {3, 4}}) {
      absl::StrAppend(&text, "\tnode", i + from, " -- node", i + to, "\n");
    }
  }
  const auto graph = models::ParseProfileGraph("branches", text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return AntichainDagOf("branches", *graph).value();
}

TEST(PipeDreamTest, AStoppedSearchHasTheBestPlanOfFewerCuts) {
  const AntichainDag dag = Branches(100);
  const int num_states = static_cast<int>(dag.states.size());
  ASSERT_GT(num_states, 400);
  for (const bool straight : {false, true}) {
    PipeDreamOptions options;
    options.num_machines = {4, 8};
    options.bytes_per_second = {1e7, 1e6};
    options.activation_compression_ratio = 1;
    options.straight = straight;
    const auto best = OptimizePipeDream("f", dag, options);
    ASSERT_TRUE(best.ok()) << best.status();
    EXPECT_EQ(best->num_cut_states, num_states);
    // Progress is reported only in the last round, which has every cut.
    bool is_stopped = false;
    options.progress = [&](double) { is_stopped = true; };
    options.stop = [&] { return is_stopped; };
    const auto plan = OptimizePipeDream("f", dag, options);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->num_cut_states, (num_states + 3) / 4);
    EXPECT_EQ(plan->num_states, num_states);
    EXPECT_GE(plan->pipeline_seconds, best->pipeline_seconds);
    EXPECT_LT(plan->pipeline_seconds, 2 * best->pipeline_seconds);
    EXPECT_NEAR(SlowestOf(dag, options, plan->levels), plan->pipeline_seconds,
                1e-12);
    int num_machines = 0, end = 0;
    for (const PipeDreamStage& stage : plan->stages) {
      EXPECT_EQ(stage.first_state, end);
      end = stage.end_state;
      num_machines += stage.replicas;
    }
    EXPECT_EQ(end, num_states);
    EXPECT_EQ(num_machines, 32);
  }
}

TEST(PipeDreamTest, ASearchThatIsNotStoppedFindsTheSameWithCoarseRounds) {
  const AntichainDag dag = Branches(100);
  PipeDreamOptions options;
  options.num_machines = {4, 8};
  options.bytes_per_second = {1e7, 1e6};
  const auto best = OptimizePipeDream("f", dag, options);
  options.stop = [] { return false; };
  const auto plan = OptimizePipeDream("f", dag, options);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->num_cut_states, plan->num_states);
  EXPECT_EQ(LevelsOf(*plan), LevelsOf(*best));
}

TEST(PipeDreamTest, ASearchThatIsStoppedAtOnceHasNoPlan) {
  PipeDreamOptions options = Machines(2);
  options.stop = [] { return true; };
  EXPECT_EQ(OptimizePipeDream("f", EqualStates(), options).status(),
            absl::CancelledError("f: interrupted before a plan was found"));
}

TEST(PipeDreamTest, NamesEveryWrongOption) {
  PipeDreamOptions options;
  options.num_machines = {4, 0};
  options.bytes_per_second = {-1};
  options.activation_compression_ratio = 0;
  const std::string message(
      OptimizePipeDream("g.txt", EqualStates(), options).status().message());
  EXPECT_THAT(
      message,
      HasSubstr(
          "g.txt: bandwidth has 1 entries, expected 2, as many as machines"));
  EXPECT_THAT(message, HasSubstr("g.txt: machines[1] is 0"));
  EXPECT_THAT(message, HasSubstr("g.txt: bandwidth[0] is -1"));
  EXPECT_THAT(message, HasSubstr("g.txt: activation-compression-ratio"));
}

}  // namespace weir::plan::pipedream_test
