// SPDX-License-Identifier: Apache-2.0
#include "results/compare/execution_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "results/compare/measured_timeline.h"
#include "results/validate.h"
#include "tests/golden.h"

namespace weir::results::execution_comparison_test {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double kMiB = 1024.0 * 1024;

Result Timed(absl::string_view csv) {
  auto result = ReadMeasuredTimeline("hand", csv);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : Result();
}

// Returns two stages, one microbatch, and transfers of half a second.
Result Predicted() {
  return Timed(
      "rank,action,start_seconds,end_seconds\n"
      "0,0F0,0,1\n0,0SEND_F0,1,1.5\n1,1F0,1.5,2.5\n"
      "1,1B0,2.5,4.5\n1,1SEND_B0,4.5,5\n0,0B0,5,7\n");
}

// Returns the same with 1F0 longer by a second.
Result Stretched() {
  return Timed(
      "rank,action,start_seconds,end_seconds\n"
      "0,0F0,0,1\n0,0SEND_F0,1,1.5\n1,1F0,1.5,3.5\n"
      "1,1B0,3.5,5.5\n1,1SEND_B0,5.5,6\n0,0B0,6,8\n");
}

ExecutionComparison Compare(const Result& predicted, const Result& measured) {
  auto comparison =
      CompareExecution("predicted.pb", predicted, "replay.pb", measured);
  EXPECT_TRUE(comparison.ok()) << comparison.status();
  return comparison.ok() ? *std::move(comparison) : ExecutionComparison();
}

TEST(ExecutionComparisonTest, OneStretchedPassMovesWhatFollowsIt) {
  const ExecutionComparison c = Compare(Predicted(), Stretched());
  EXPECT_EQ(c.makespan.error(), 7.0 / 8 - 1);
  EXPECT_EQ(c.span.predicted, 7);
  EXPECT_EQ(c.span.measured, 8);
  // Busy 3 and 3 of 7, 3 and 4 of 8.
  EXPECT_DOUBLE_EQ(c.idle_ratio.predicted, 8.0 / 14);
  EXPECT_DOUBLE_EQ(c.idle_ratio.measured, 9.0 / 16);

  ASSERT_EQ(c.errors.size(), 3);  // F, B, all
  const ActionErrors& forward = c.errors[0];
  EXPECT_EQ(forward.durations.num_rows, 2);
  EXPECT_EQ(forward.durations.mean_absolute, 0.25);
  EXPECT_EQ(forward.durations.worst, -0.5);
  EXPECT_EQ(forward.worst_duration, "rank 1 1F0");
  EXPECT_EQ(forward.starts.worst, 0);
  EXPECT_EQ(forward.ends.worst, -1.0 / 8);
  const ActionErrors& backward = c.errors[1];
  EXPECT_EQ(backward.durations.worst, 0);
  EXPECT_EQ(backward.starts.mean_absolute, 1.0 / 8);
  EXPECT_EQ(backward.starts.bias, -1.0 / 8);
  EXPECT_EQ(c.errors[2].op, "all");
  EXPECT_EQ(c.errors[2].num_actions, 4);

  EXPECT_EQ(c.predicted_idle[0].of(IdleCause::kPass), 3.5);
  EXPECT_EQ(c.measured_idle[0].of(IdleCause::kPass), 4.5);
  EXPECT_EQ(c.predicted_idle[0].of(IdleCause::kWire), 0.5);
  EXPECT_EQ(c.measured_idle[0].of(IdleCause::kWire), 0.5);
  EXPECT_EQ(c.predicted_idle[1].drain_seconds, 2.5);
  EXPECT_EQ(c.measured_idle[1].drain_seconds, 2.5);
  EXPECT_EQ(c.predicted_transfers.awaited_pass_seconds, 3.5 + 1);
  EXPECT_EQ(c.measured_transfers.awaited_pass_seconds, 4.5 + 1);
  EXPECT_EQ(c.measured_transfers.wire_seconds, 1);
}

TEST(ExecutionComparisonTest, AProfileOfAnotherGpuIsAWarning) {
  Result predicted = Predicted(), measured = Stretched();
  EXPECT_THAT(Compare(predicted, measured).warnings, IsEmpty());
  measured.mutable_replay()->set_gpu_name("NVIDIA X");
  measured.mutable_replay()->set_gpu_hash("aa");
  EXPECT_THAT(Compare(predicted, measured).warnings,
              ElementsAre(HasSubstr(
                  "replay.pb was executed on NVIDIA X (aa), but the profile of "
                  "predicted.pb was not measured on a GPU")));
  ResultProvenance* profile = predicted.mutable_provenance();
  profile->set_gpu_name("NVIDIA X");
  profile->set_gpu_hash("bb");
  profile->set_of_replays(true);
  EXPECT_THAT(Compare(predicted, measured).warnings,
              ElementsAre(HasSubstr("was measured on NVIDIA X (bb): times of "
                                    "different GPUs differ")));
  profile->set_gpu_hash("aa");
  EXPECT_THAT(Compare(predicted, measured).warnings, IsEmpty());
  profile->set_of_replays(false);
  EXPECT_THAT(Compare(predicted, measured).warnings,
              ElementsAre(HasSubstr("predicts frameworks, whose attention")));
}

TEST(ExecutionComparisonTest, OtherActionsAreNamedWithWhatToSimulate) {
  Result predicted = Predicted();
  auto* actions = predicted.mutable_timeline()->mutable_actions();
  actions->set_microbatch(0, 5);
  predicted.set_num_batches(3);
  Result measured = Stretched();
  measured.set_num_batches(1);
  const auto compared = CompareExecution("a.pb", predicted, "b.pb", measured);
  EXPECT_EQ(compared.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      std::string(compared.status().message()),
      "a.pb: rank 0 lacks actions that b.pb ran, 0F0: simulate with --batches "
      "1 and --out\n"
      "a.pb: rank 0 has actions that b.pb did not run, 0F5: simulate with "
      "--batches 1 and --out");
}

TEST(ExecutionComparisonTest, ACutTimelineSaysHowManyBatchesToAskFor) {
  Result predicted = Predicted();
  predicted.mutable_timeline()->set_from_seconds(3);
  predicted.set_num_batches(200);
  Result measured = Stretched();
  measured.set_num_batches(4);
  const auto compared = CompareExecution("a.pb", predicted, "b.pb", measured);
  EXPECT_EQ(compared.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(compared.status().message()),
              HasSubstr("simulate with --batches 4 and --out"));
}

TEST(ExecutionComparisonTest, OtherRanksAreAnError) {
  const Result one = Timed("rank,action,start_ms,end_ms\n0,0F0,0,1\n");
  const auto compared = CompareExecution("a.pb", Predicted(), "b.pb", one);
  EXPECT_THAT(std::string(compared.status().message()),
              HasSubstr("a.pb: ranks are 2, expected 1 as in b.pb: simulate "
                        "with --pp 1 and --out"));
}

TEST(ExecutionComparisonTest, SwappedSidesAreSuspected) {
  Result replay = Stretched();
  replay.mutable_replay()->set_num_steps(1);
  EXPECT_THAT(Compare(replay, Predicted()).notes,
              ::testing::Contains(HasSubstr("swapped?")));
  EXPECT_THAT(Compare(Predicted(), replay).notes,
              ::testing::Not(::testing::Contains(HasSubstr("swapped?"))));
}

TEST(ExecutionComparisonTest, OtherReplicasAreLeftOutAndSaid) {
  Result predicted = Predicted();
  predicted.set_data_parallel(2);
  RankResult* other = predicted.add_ranks();
  other->set_rank(0);
  other->set_replica(1);
  auto* actions = predicted.mutable_timeline()->mutable_actions();
  actions->add_gpu(2);
  actions->add_op(Timeline::Actions::FORWARD);
  actions->add_stage(0);
  actions->add_microbatch(7);
  actions->add_num_microbatches(1);
  actions->add_start_seconds(0);
  actions->add_end_seconds(1);
  const ExecutionComparison c = Compare(predicted, Predicted());
  EXPECT_EQ(c.actions.size(), 4);
  EXPECT_THAT(c.notes, ::testing::Contains(
                           "only replica 0 of 2 and tensor rank 0 of 1 of "
                           "predicted.pb are compared"));
}

void AddMemory(int rank, double at_seconds,
               const std::vector<std::pair<const char*, double>>& classes,
               Result* result) {
  RankResult* gpu = result->mutable_ranks(rank);
  double sum = 0;
  for (const auto& [name, mib] : classes) {
    MemoryClass* one = gpu->add_peak_memory_classes();
    one->set_name(name);
    one->set_bytes(mib * kMiB);
    sum += mib * kMiB;
  }
  gpu->set_peak_memory_bytes(sum);
  gpu->set_peak_memory_at_seconds(at_seconds);
}

// Adds memory. Only the prediction has a context and communicators.
void AddMemories(Result* predicted, Result* measured) {
  for (int rank = 0; rank < 2; ++rank) {
    AddMemory(rank, 5,
              {{"weights", 8},
               {"activations", 3},
               {"end_activations", 1},
               {"communication_buffers", 6},
               {"reserved", 100}},
              predicted);
    predicted->mutable_ranks(rank)->set_communicator_bytes(4 * kMiB);
    AddMemory(rank, 5.5,
              {{"weights", 8},
               {"activations", rank == 0 ? 4 : 6},
               {"communication_buffers", 2}},
              measured);
  }
  measured->mutable_replay()->add_allocator_peak_bytes(15 * kMiB);
  measured->mutable_replay()->add_allocator_peak_bytes(0);
}

TEST(ExecutionComparisonTest, MemoryIsComparedInWhatBothCount) {
  Result predicted = Predicted(), measured = Stretched();
  AddMemories(&predicted, &measured);
  const ExecutionComparison c = Compare(predicted, measured);
  ASSERT_EQ(c.memory.size(), 2);
  EXPECT_EQ(c.memory[0].predicted.bytes, 14 * kMiB);
  EXPECT_EQ(c.memory[0].predicted.left_out_bytes, 104 * kMiB);
  EXPECT_EQ(c.memory[0].measured.bytes, 14 * kMiB);
  EXPECT_EQ(c.memory[0].measured.left_out_bytes, 0);
  EXPECT_EQ(c.memory[0].error(), 0);
  EXPECT_DOUBLE_EQ(c.memory[0].allocator_error(), 14.0 / 15 - 1);
  EXPECT_EQ(c.memory[0].early_and_late(), 0);
  EXPECT_EQ(c.memory[1].error(), 14.0 / 16 - 1);
  EXPECT_EQ(c.memory[1].allocator_error(), 0);
  EXPECT_EQ(c.memory[0].predicted.during, "0B0");
  EXPECT_EQ(c.memory[0].measured.during, "after 0F0");
  EXPECT_EQ(c.memory[1].predicted.during, "after 1B0");
  std::vector<std::string> classes;
  for (const ComparedClass& one : c.memory[1].classes) {
    classes.push_back(one.name);
  }
  EXPECT_THAT(classes,
              ElementsAre("activations", "communication_buffers", "weights"));
  EXPECT_EQ(c.memory[1].classes[0].predicted_bytes, 4 * kMiB);
  EXPECT_EQ(c.memory[1].classes[0].measured_bytes, 6 * kMiB);
}

TEST(ExecutionComparisonTest, WhatIsJudgedIsTimeAndEveryRanksMemory) {
  Result predicted = Predicted(), measured = Stretched();
  AddMemories(&predicted, &measured);
  std::vector<std::string> what;
  std::vector<double> errors;
  for (const JudgedError& j : JudgedErrors(Compare(predicted, measured))) {
    what.push_back(j.what);
    errors.push_back(j.error);
  }
  EXPECT_THAT(what,
              ElementsAre("makespan", "peak memory of rank 0",
                          "peak memory of rank 0 by the allocator's count",
                          "peak memory of rank 1"));
  EXPECT_THAT(errors,
              ElementsAre(-0.125, 0, DoubleNear(-1.0 / 15, 1e-15), -0.125));
}

TEST(ExecutionComparisonTest, ErrorsAboveTheToleranceAreNamed) {
  Result predicted = Predicted(), measured = Stretched();
  AddMemories(&predicted, &measured);
  const ExecutionComparison comparison = Compare(predicted, measured);
  EXPECT_THAT(
      ErrorsAbove(comparison, {0.1, 0.1}),
      ElementsAre("makespan -12.50 %", "peak memory of rank 1 -12.50 %"));
  EXPECT_THAT(ErrorsAbove(comparison, {0.2, 0.2}), testing::IsEmpty());
  EXPECT_THAT(ErrorsAbove(comparison, {0.2, 0.1}),
              ElementsAre("peak memory of rank 1 -12.50 %"));
  EXPECT_THAT(ErrorsAbove(comparison, {0.1, 0.2}),
              ElementsAre("makespan -12.50 %"));
  EXPECT_THAT(ErrorsAbove(comparison, {}), testing::IsEmpty());
}

// The allocator's peak is compared with the peak of what was taken from it.
// Whether that much is needed is checked by the count over time.
TEST(ExecutionComparisonTest, AnAllocatorIsComparedWithWhatWasTakenFromIt) {
  Result predicted = Predicted(), measured = Stretched();
  AddMemories(&predicted, &measured);
  for (const int taken : {16, 18}) {
    measured.mutable_replay()->add_taken_peak_bytes(taken * kMiB);
  }
  const ExecutionComparison c = Compare(predicted, measured);
  EXPECT_EQ(c.memory[0].error(), 0);
  EXPECT_DOUBLE_EQ(c.memory[0].allocator_error(), 16.0 / 15 - 1);
  EXPECT_DOUBLE_EQ(c.memory[0].early_and_late(), 16.0 / 14 - 1);
  EXPECT_EQ(c.memory[1].allocator_error(), 0);  // it has none
}

// Returns a comparison that has all blocks of the views.
ExecutionComparison Sample() {
  Result predicted = Predicted(), measured = Stretched();
  AddMemories(&predicted, &measured);
  for (const int taken : {15, 17}) {
    measured.mutable_replay()->add_taken_peak_bytes(taken * kMiB);
  }
  predicted.set_schedule("gpipe");
  measured.set_schedule("gpipe");
  Replay* replay = measured.mutable_replay();
  replay->set_device("2 partitions of 66 multiprocessors of a GPU");
  replay->set_num_steps(2);
  replay->add_losses(5.5);
  replay->add_losses(5.25);
  replay->set_formula("minibatch SGD");
  replay->set_weights_difference(1.5e-16);
  replay->set_change_difference(2.5e-15);
  replay->set_losses_difference(0);
  return Compare(predicted, measured);
}

TEST(ReplayViewsTest, GoldenTable) {
  ExpectGolden("results/golden/replay.txt", ExecutionTable(Sample(), false));
}

TEST(ReplayViewsTest, GoldenCsv) {
  ExpectGolden("results/golden/replay.csv", ExecutionCsv(Sample()));
}

TEST(ReplayViewsTest, GoldenJson) {
  ExpectGolden(
      "results/golden/replay.json",
      nlohmann::ordered_json::parse(ExecutionJson(Sample())).dump(2) + "\n");
}

TEST(ReplayViewsTest, WithAllEveryRankHasItsClasses) {
  EXPECT_THAT(ExecutionTable(Sample(), true),
              ::testing::AllOf(HasSubstr("rank 0 at its peaks"),
                               HasSubstr("rank 1 at its peaks")));
}

}  // namespace weir::results::execution_comparison_test
