// SPDX-License-Identifier: Apache-2.0
// Tests the output formats of planners' answers, field by field.
#include "plan/papers/planner_views.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/csv.h"

namespace weir::plan::planner_views_test {

using nlohmann::json;
using testing::HasSubstr;

// Returns a chain of three nodes, each of which is a state.
AntichainDag ChainOfThree() {
  PlannerWork work;
  work.layers.resize(3);
  for (int i = 0; i < 3; ++i) work.layers[i].name = "node" + std::to_string(i);
  return AntichainDagOf(work);
}

PipeDreamPlan TwoStages() {
  PipeDreamPlan plan;
  plan.pipeline_seconds = 2;
  plan.single_stage_seconds = 5;
  plan.data_parallel_seconds = 3;
  plan.num_states = 3;
  plan.stages = {{0, 2, 1.5, 4}, {2, 3, 0.25, 1}};
  plan.levels = {{{0, 2, 1.5, 2}, {2, 3, 0.25, 1}}, {{0, 3, 1.75, 2}}};
  return plan;
}

TEST(PipeDreamViewTest, JsonHasEveryStageOfEveryLevel) {
  EXPECT_EQ(json::parse(PipeDreamJson(ChainOfThree(), TwoStages())),
            json::parse(R"json({
    "pipeline_time_seconds": 2.0, "single_stage_time_seconds": 5.0,
    "data_parallel_time_seconds": 3.0, "num_states": 3,
    "stages": [
      {"first_state": 0, "end_state": 2, "seconds": 1.5, "replicas": 4,
       "nodes": ["node0", "node1"]},
      {"first_state": 2, "end_state": 3, "seconds": 0.25, "replicas": 1,
       "nodes": ["node2"]}],
    "levels": [
      [{"first_state": 0, "end_state": 2, "seconds": 1.5, "replicas": 2},
       {"first_state": 2, "end_state": 3, "seconds": 0.25, "replicas": 1}],
      [{"first_state": 0, "end_state": 3, "seconds": 1.75, "replicas": 2}]]
  })json"));
}

TEST(PipeDreamViewTest, TheTableComparesThePipelineWithOneMachine) {
  EXPECT_EQ(PipeDreamTable(ChainOfThree(), TwoStages()),
            R"(pipeline       2 s per minibatch
one machine    5 s, 2.50 times as long
data parallel  3 s
3 states

stage  states     replicas  seconds     nodes
    0  0-1               4  1.5         2, node0 to node1
    1  2-2               1  0.25        1, node2 to node2
)");
}

// Returns an answer that was simulated, an answer that was only planned, and an
// answer without a plan.
std::vector<PlannerResult> ThreeAnswers() {
  std::vector<PlannerResult> answers(3);
  answers[0].algorithm = "dapple";
  answers[0].plan = {
      .algorithm = "dapple",
      .schedule = "dapple-pa:replicas=2,1",
      .objective_seconds = 0.5,
      .stages = {{0, 3, {4, 5}, false, false}, {3, 9, {6}, true, true}},
      .num_microbatches = 8,
      .microbatch_size = 2,
      .chooses_recompute = true,
      .notes = {"a note"}};
  answers[0].batch_seconds = 0.75;
  answers[0].samples_per_second = 16;
  answers[0].peak_memory_bytes = 3e9;
  answers[0].fits_memory = true;
  answers[1] = answers[0];
  answers[1].algorithm = "spp";
  answers[1].plan.microbatch_size = 0;
  answers[1].simulated = absl::InvalidArgumentError("not\nsaid");
  answers[2].algorithm = "bapipe";
  answers[2].planned = answers[2].simulated = absl::NotFoundError("no\nroom");
  return answers;
}

TEST(AnswersViewTest, JsonHasWhatThereIsOfEach) {
  const char plan[] = R"json({
    "algorithm": "dapple", "schedule": "dapple-pa:replicas=2,1",
    "objective_seconds": 0.5, "num_microbatches": 8, "microbatch_size": 2,
    "stages": [
      {"first_layer": 0, "end_layer": 3, "replicas": 2, "devices": [4, 5],
       "recompute": false, "swap": false},
      {"first_layer": 3, "end_layer": 9, "replicas": 1, "devices": [6],
       "recompute": true, "swap": true}],
    "planned_batch_seconds": 0.5, "inference": false,
    "notes": ["a note"],
    "simulated": {"batch_seconds": 0.75, "samples_per_second": 16.0,
                  "peak_memory_bytes": 3e9, "fits_memory": true,
                  "lint_errors": 0}})json";
  json first = json::parse(plan), second = first;
  second["algorithm"] = "spp";
  second.erase("microbatch_size");  // 0: as in the scenario
  second.erase("simulated");
  second["not_simulated"] = "not\nsaid";
  const json third = {{"algorithm", "bapipe"}, {"error", "no\nroom"}};
  EXPECT_EQ(json::parse(PlannerResultsJson(ThreeAnswers())),
            (json{{"answers", {first, second, third}}}));
}

TEST(AnswersViewTest, CsvHasARowOfAsManyFieldsForEach) {
  const auto table = ReadCsv("csv", PlannerResultsCsv(ThreeAnswers()));
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_THAT(
      table->header(),
      testing::ElementsAre("algorithm", "schedule", "objective_seconds",
                           "batch_seconds", "samples_per_second",
                           "peak_memory_bytes", "fits_memory", "lint_errors",
                           "stages", "planned_batch_seconds", "inference"));
  ASSERT_EQ(table->num_rows(), 3);
  const std::string stages = "0-2 x2 | 3-8 recompute swap";
  EXPECT_THAT(
      table->rows()[0].fields,
      testing::ElementsAre("dapple", "dapple-pa:replicas=2,1", "0.5", "0.75",
                           "16", "3e+09", "1", "0", stages, "0.5", "0"));
  EXPECT_THAT(table->rows()[1].fields,
              testing::ElementsAre("spp", "dapple-pa:replicas=2,1", "0.5", "",
                                   "", "", "", "", stages, "0.5", "0"));
  EXPECT_THAT(table->rows()[2].fields,
              testing::ElementsAre("bapipe", "", "", "", "", "", "", "",
                                   "no plan: no; room", "", ""));
}

// Some planners minimize the time of a microbatch, others that of a batch, and
// EdgePipe plans inference.
TEST(AnswersViewTest, TimesAreThoseOfABatchAndInferenceIsMarked) {
  std::vector<PlannerResult> answers = ThreeAnswers();
  answers.resize(1);
  answers[0].plan.objectives_per_batch = 24;
  answers[0].plan.inference = true;
  EXPECT_THAT(PlannerResultsTable(answers),
              HasSubstr("dapple-pa:replicas=2,1 (inference only),"));
  EXPECT_EQ(json::parse(PlannerResultsJson(
                answers))["answers"][0]["planned_batch_seconds"],
            12);
}

TEST(AnswersViewTest, TheTableSaysWhyThereIsNothing) {
  std::vector<PlannerResult> answers = ThreeAnswers();
  EXPECT_EQ(PlannerResultsTable(answers),
            R"(algorithm  step time      peak  fits  schedule, stages
dapple        750 ms  2.79 GiB  yes   dapple-pa:replicas=2,1, 0-2 x2 | 3-8
                                      recompute swap
spp                -         -  -     dapple-pa:replicas=2,1, 0-2 x2 | 3-8
                                      recompute swap
bapipe             -         -  -     no plan: no; room
not shown: planned, samples/s (--wide)
planned: time of a batch by the planner's own model

dapple: a note
spp: not simulated: not; said
spp: a note
)");
  answers.resize(1);
  answers[0].fits_memory = false;
  EXPECT_THAT(PlannerResultsTable(answers), HasSubstr("  no    dapple-pa"));
  answers[0].num_lint_errors = 1;
  EXPECT_THAT(PlannerResultsTable(answers), HasSubstr("  lint  dapple-pa"));
}

}  // namespace weir::plan::planner_views_test
