// SPDX-License-Identifier: Apache-2.0
#include "plan/synthesis/synthesis_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/csv.h"
#include "scenarios/costs.h"
#include "scenarios/scenario.h"

namespace weir::plan::synthesis_view_test {

using testing::HasSubstr;
using testing::Not;

// Returns a problem with two different stages. A microbatch holds at most 4.
OrderProblem SomeProblem() {
  OrderProblem problem = {
      .num_ranks = 2, .num_microbatches = 1, .memory_limit = 8};
  problem.may_offload = true;
  problem.costs.stages = {{.forward = 1.1,
                           .backward_input = 1.2,
                           .backward_weight = 1.3,
                           .offload = 0.4,
                           .activation = 4,
                           .weight_gradient_inputs = 2},
                          {.forward = 2.1,
                           .backward_input = 2.2,
                           .backward_weight = 2.3,
                           .offload = 0.7,
                           .activation = 3,
                           .weight_gradient_inputs = 1}};
  problem.costs.hop = 0.1;
  return problem;
}

// Returns a result that no search would find: all values differ, so that
// swapped fields are detected.
Synthesis SomeSynthesis(const OrderProblem& problem) {
  Synthesis synthesis;
  synthesis.schedule = EmptyOrder(problem, {0, 1});
  const std::vector<std::string> rows[] = {{"0F0", "0O0", "0R0", "0I0", "0W0"},
                                           {"1F0", "1I0", "1W0"}};
  for (int rank = 0; rank < 2; ++rank) {
    for (const std::string& action : rows[rank]) {
      synthesis.schedule.rank_actions[rank].push_back(
          *schedules::ParseAction(action));
    }
  }
  synthesis.source = "local search, from \"zb-1p\"";
  synthesis.value = 11;
  synthesis.makespan = 12;
  synthesis.span = 13;
  synthesis.peak_held = {6, 7};
  synthesis.named = {{"zb-1p:a=1,b=2", {}, 16, 5, true},
                     {"gpipe", {}, 14, 9, false}};
  synthesis.bound = 10;
  synthesis.bound_reason = "one rank's work";
  synthesis.mip = "60 booleans: stopped";
  return synthesis;
}

std::map<std::string, std::string> Columns(const std::string& text) {
  const auto table = ReadCsv("csv", text);
  EXPECT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->num_rows(), 1);
  std::map<std::string, std::string> columns;
  for (size_t i = 0; i < table->header().size(); ++i) {
    columns[table->header()[i]] = table->rows()[0].fields[i];
  }
  return columns;
}

TEST(SynthesisViewTest, JsonIsTheWholeProof) {
  const OrderProblem problem = SomeProblem();
  const Synthesis synthesis = SomeSynthesis(problem);
  auto json = nlohmann::json::parse(
      SynthesisJson(problem, synthesis, SimulatedTimes{18, 19}));
  json.erase("costs");  // tested below
  const auto expected = nlohmann::json::parse(R"json({
    "num_ranks": 2, "num_stages": 2, "num_microbatches": 1,
    "placement": [0, 1], "objective": "makespan",
    "source": "local search, from \"zb-1p\"", "value_seconds": 11.0,
    "makespan_seconds": 12.0, "span_seconds": 13.0,
    "lower_bound_seconds": 10.0, "lower_bound_reason": "one rank's work",
    "is_proven_optimal": false,
    "mixed_integer_program": "60 booleans: stopped",
    "is_valid": true, "lint_errors": 0, "lint_notes": 2,
    "peak_held_per_rank": [6.0, 7.0], "held_by_microbatch": 4.0,
    "num_offloads": 1, "memory_limit": 8.0,
    "best_named": "zb-1p:a=1,b=2", "best_named_seconds": 16.0,
    "simulated_seconds": 18.0, "best_named_simulated_seconds": 19.0,
    "named": [{"name": "zb-1p:a=1,b=2", "value_seconds": 16.0,
               "peak_held": 5.0, "fits": true},
              {"name": "gpipe", "value_seconds": 14.0, "peak_held": 9.0,
               "fits": false}]})json");
  EXPECT_NEAR(json["gap"], 0.1, 1e-9);  // 11 / 10 - 1
  json.erase("gap");
  EXPECT_EQ(json, expected) << nlohmann::json::diff(json, expected);
}

TEST(SynthesisViewTest, JsonLeavesOutWhatIsNotThere) {
  OrderProblem problem = SomeProblem();
  problem.memory_limit = std::numeric_limits<double>::infinity();
  problem.objective = OrderObjective::kSpan;
  Synthesis synthesis = SomeSynthesis(problem);
  synthesis.mip = "";
  synthesis.is_proven = true;
  synthesis.bound = 0;
  std::swap(synthesis.named[0], synthesis.named[1]);  // the first does not fit
  synthesis.schedule.rank_actions[1].pop_back();      // a W is missing
  const auto json = nlohmann::json::parse(
      SynthesisJson(problem, synthesis, SimulatedTimes{18, {}}));
  EXPECT_EQ(json["objective"], "span");
  EXPECT_TRUE(json["memory_limit"].is_null());
  EXPECT_EQ(json["mixed_integer_program"], "not used");
  EXPECT_EQ(json["is_proven_optimal"], true);
  EXPECT_EQ(json["gap"], 0.0);
  EXPECT_EQ(json["is_valid"], false);
  EXPECT_GT(json["lint_errors"], 0);
  EXPECT_FALSE(json.contains("best_named"));
  EXPECT_FALSE(json.contains("best_named_seconds"));
  EXPECT_FALSE(json.contains("best_named_simulated_seconds"));
  EXPECT_EQ(json["simulated_seconds"], 18.0);
  EXPECT_FALSE(nlohmann::json::parse(SynthesisJson(problem, synthesis, {}))
                   .contains("simulated_seconds"));
}

// --costs can parse the costs in the proof.
TEST(SynthesisViewTest, CostsAreReadBack) {
  for (const bool can_split : {true, false}) {
    OrderProblem problem = SomeProblem();
    problem.can_split = can_split;
    const auto json = nlohmann::json::parse(
        SynthesisJson(problem, SomeSynthesis(problem), {}));
    const auto read = scenarios::ParseCosts(json["costs"].get<std::string>());
    ASSERT_TRUE(read.ok()) << read.status();
    const schedules::PassCosts costs = scenarios::PassCostsOf(*read);
    EXPECT_EQ(costs.hop, problem.costs.hop);
    ASSERT_EQ(costs.stages.size(), 2);
    for (int stage = 0; stage < 2; ++stage) {
      const schedules::StagePassCosts& one = costs.of(stage);
      const schedules::StagePassCosts& given = problem.costs.of(stage);
      EXPECT_EQ(one.forward, given.forward);
      if (can_split) {
        EXPECT_EQ(one.backward_input, given.backward_input);
        EXPECT_EQ(one.backward_weight, given.backward_weight);
      }
      EXPECT_EQ(one.fused_backward(), given.fused_backward());
      EXPECT_EQ(one.offload, given.offload);
      EXPECT_EQ(one.activation, given.activation);
      EXPECT_EQ(one.weight_gradient_inputs, given.weight_gradient_inputs);
    }
  }
}

TEST(SynthesisViewTest, CostsOfEqualStagesAreOneNumberAndSomeHaveNoWords) {
  OrderProblem problem = SomeProblem();
  problem.costs.stages[1] = problem.costs.stages[0];
  const auto costs = [&] {
    const Synthesis synthesis = SomeSynthesis(problem);
    return nlohmann::json::parse(SynthesisJson(problem, synthesis, {}))["costs"]
        .get<std::string>();
  };
  EXPECT_THAT(costs(), Not(HasSubstr("/")));
  // A whole backward takes less than 1.2 + 1.3, on one stage only.
  problem.costs.stages[1].backward = 2;
  EXPECT_EQ(costs(), "");
  problem.costs.stages[1] = problem.costs.stages[0];
  problem.costs.stages[1].activation = 0;  // --costs would treat 0 as 1
  EXPECT_EQ(costs(), "");
}

TEST(SynthesisViewTest, CsvIsOneRowOfTheSame) {
  const OrderProblem problem = SomeProblem();
  const auto columns = Columns(
      SynthesisCsv(problem, SomeSynthesis(problem), SimulatedTimes{18, 19}));
  const std::map<std::string, std::string> expected = {
      {"num_ranks", "2"},
      {"num_stages", "2"},
      {"num_microbatches", "1"},
      {"memory_limit_microbatches", "2"},  // 8 / 4
      {"may_offload", "1"},
      {"objective", "makespan"},
      {"found_seconds", "11"},
      {"best_named", "zb-1p:a=1,b=2"},
      {"best_named_seconds", "16"},
      {"gain", "0.3125"},  // 5 / 16
      {"lower_bound_seconds", "10"},
      {"gap", "0.1000"},
      {"is_proven_optimal", "0"},
      {"source", "local search, from \"zb-1p\""},
      {"num_offloads", "1"},
      {"peak_microbatches_per_rank", "1.5/1.75"},
      {"lint_errors", "0"},
      {"makespan_seconds", "12"},
      {"simulated_seconds", "18"},
      {"mixed_integer_program", "60 booleans: stopped"}};
  EXPECT_EQ(columns, expected);
}

TEST(SynthesisViewTest, CsvLeavesFieldsEmptyWhereNothingIsKnown) {
  OrderProblem problem = SomeProblem();
  problem.memory_limit = std::numeric_limits<double>::infinity();
  Synthesis synthesis = SomeSynthesis(problem);
  synthesis.named.clear();
  auto columns = Columns(SynthesisCsv(problem, synthesis, {}));
  for (const char* name : {"memory_limit_microbatches", "best_named",
                           "best_named_seconds", "gain", "simulated_seconds"}) {
    EXPECT_EQ(columns[name], "") << name;
  }
}

// If passes hold no memory, a limit has no meaning and they hold 0
// microbatches.
TEST(SynthesisViewTest, PassesThatHoldNothingHoldZeroMicrobatches) {
  OrderProblem problem = SomeProblem();
  for (schedules::StagePassCosts& stage : problem.costs.stages) {
    stage.activation = stage.weight_gradient_inputs = 0;
  }
  problem.memory_limit = 0;
  Synthesis synthesis = SomeSynthesis(problem);
  synthesis.peak_held = {0, 0};
  synthesis.named[0].peak = synthesis.named[1].peak = 0;
  auto columns = Columns(SynthesisCsv(problem, synthesis, {}));
  EXPECT_EQ(columns["peak_microbatches_per_rank"], "0/0");
  EXPECT_EQ(columns["memory_limit_microbatches"], "");
  EXPECT_THAT(SynthesisTable(problem, synthesis, {}), Not(HasSubstr("nan")));
}

TEST(SynthesisViewTest, TheTableSetsWhatWasFoundAgainstNamedSystems) {
  const OrderProblem problem = SomeProblem();
  const Synthesis synthesis = SomeSynthesis(problem);
  const std::string table =
      SynthesisTable(problem, synthesis, SimulatedTimes{18, 19});
  EXPECT_EQ(table,
            R"(order          makespan  above bound  peak activations  fits
found              11 s       10.0 %              1.75   yes
zb-1p:a=1,b=2      16 s       60.0 %              1.25   yes
gpipe              14 s       40.0 %              2.25    no

found by: local search, from "zb-1p"
31.2 % less than the best named schedule that fits, zb-1p:a=1,b=2
bound: 10 s (one rank's work)
not proven: at most 10.0 % above the optimum
mixed-integer program: 60 booleans: stopped
simulated: 18 s, zb-1p:a=1,b=2 19 s
)");
}

TEST(SynthesisViewTest, TheTableSaysWhenNothingIsBetter) {
  OrderProblem problem = SomeProblem();
  problem.objective = OrderObjective::kSpan;
  Synthesis synthesis = SomeSynthesis(problem);
  synthesis.named[0].value = synthesis.value;
  synthesis.is_proven = true;
  synthesis.mip = "";
  std::string table = SynthesisTable(problem, synthesis, {});
  EXPECT_THAT(table, HasSubstr("span"));
  EXPECT_THAT(table, HasSubstr("\nno better than zb-1p:a=1,b=2\n"));
  EXPECT_THAT(table, HasSubstr("\nproven optimal for these stage times\n"));
  EXPECT_THAT(table, Not(HasSubstr("mixed-integer")));
  EXPECT_THAT(table, Not(HasSubstr("simulated")));
  synthesis.named[0].fits = false;
  table = SynthesisTable(problem, synthesis, SimulatedTimes{18, {}});
  EXPECT_THAT(table, HasSubstr("\nno named schedule fits the memory limit\n"));
  EXPECT_THAT(table, HasSubstr("\nsimulated: 18 s\n"));
}

}  // namespace weir::plan::synthesis_view_test
