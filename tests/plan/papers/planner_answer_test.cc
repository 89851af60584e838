// SPDX-License-Identifier: Apache-2.0
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <string>

#include "plan/papers/planner_result.h"

namespace weir::plan::planner_answer_test {

using google::protobuf::util::MessageDifferencer;

// Returns an answer with distinct values in all fields (except flags), so that
// swapped fields are detected too.
PlannerResult DistinctAnswer() {
  PlannerResult answer;
  answer.algorithm = "dapple";
  answer.planned = absl::CancelledError("planned");
  answer.plan = {.algorithm = "spp",
                 .schedule = "1f1b:chunks=3",
                 .objective_seconds = 1.0 / 3,
                 .objectives_per_batch = 12,
                 .inference = true,
                 .stages = {{.first_layer = 1,
                             .end_layer = 4,
                             .devices = {7, 5},
                             .recompute = true},
                            {.first_layer = 4,
                             .end_layer = 9,
                             .devices = {6},
                             .swap = true}},
                 .num_microbatches = 11,
                 .microbatch_size = 13,
                 .chooses_recompute = true,
                 .notes = {"first", std::string("\0\xff", 2)}};
  answer.simulated = absl::UnavailableError("simulated");
  answer.scenario.set_model("gpt2");
  answer.scenario.mutable_parallelism()->add_blocks_per_stage(3);
  answer.batch_seconds = 2.0 / 3;
  answer.samples_per_second = 17;
  answer.peak_memory_bytes = 19e9;
  answer.fits_memory = true;
  answer.num_lint_errors = 23;
  answer.trains = false;
  return answer;
}

PlannerResult ThereAndBack(const PlannerResult& answer) {
  const auto read = ParseResult(SerializeResult(answer));
  EXPECT_TRUE(read.ok()) << read.status();
  return *read;
}

// These functions fail to compile if a field is added. Add it to the comparison
// and to DistinctAnswer.
void ExpectEqual(const PlannedStage& read, const PlannedStage& written) {
  const auto& [first_layer, end_layer, devices, recompute, swap] = read;
  EXPECT_EQ(first_layer, written.first_layer);
  EXPECT_EQ(end_layer, written.end_layer);
  EXPECT_EQ(devices, written.devices);
  EXPECT_EQ(recompute, written.recompute);
  EXPECT_EQ(swap, written.swap);
}

void ExpectEqual(const PlannedPipeline& read, const PlannedPipeline& written) {
  const auto& [algorithm, schedule, objective_seconds, objectives_per_batch,
               inference, stages, num_microbatches, microbatch_size,
               chooses_recompute, notes] = read;
  EXPECT_EQ(objectives_per_batch, written.objectives_per_batch);
  EXPECT_EQ(inference, written.inference);
  EXPECT_EQ(algorithm, written.algorithm);
  EXPECT_EQ(schedule, written.schedule);
  EXPECT_EQ(objective_seconds, written.objective_seconds);
  ASSERT_EQ(stages.size(), written.stages.size());
  for (size_t i = 0; i < stages.size(); ++i) {
    ExpectEqual(stages[i], written.stages[i]);
  }
  EXPECT_EQ(num_microbatches, written.num_microbatches);
  EXPECT_EQ(microbatch_size, written.microbatch_size);
  EXPECT_EQ(chooses_recompute, written.chooses_recompute);
  EXPECT_EQ(notes, written.notes);
}

void ExpectEqual(const PlannerResult& read, const PlannerResult& written) {
  const auto& [algorithm, planned, plan, simulated, scenario, batch_seconds,
               samples_per_second, peak_memory_bytes, fits_memory,
               num_lint_errors, trains] = read;
  EXPECT_EQ(algorithm, written.algorithm);
  EXPECT_EQ(planned, written.planned);
  ExpectEqual(plan, written.plan);
  EXPECT_EQ(simulated, written.simulated);
  EXPECT_TRUE(MessageDifferencer::Equals(scenario, written.scenario));
  EXPECT_EQ(batch_seconds, written.batch_seconds);
  EXPECT_EQ(samples_per_second, written.samples_per_second);
  EXPECT_EQ(peak_memory_bytes, written.peak_memory_bytes);
  EXPECT_EQ(fits_memory, written.fits_memory);
  EXPECT_EQ(num_lint_errors, written.num_lint_errors);
  EXPECT_EQ(trains, written.trains);
}

TEST(PlannerAnswerTest, EveryFieldSurvivesTheWayToTheParent) {
  const PlannerResult answer = DistinctAnswer();
  ExpectEqual(ThereAndBack(answer), answer);
  ExpectEqual(ThereAndBack(PlannerResult()), PlannerResult());
}

// A lost field has its default value after reading. For a flag this is one of
// its two values, so both are tested.
TEST(PlannerAnswerTest, BothValuesOfEveryFlagSurvive) {
  PlannerResult answer = DistinctAnswer();
  answer.plan.chooses_recompute = answer.fits_memory = false;
  answer.trains = true;
  ExpectEqual(ThereAndBack(answer), answer);
}

TEST(PlannerAnswerTest, OtherBytesAreAnError) {
  EXPECT_EQ(ParseResult("\xff").status().code(), absl::StatusCode::kInternal);
}

}  // namespace weir::plan::planner_answer_test
