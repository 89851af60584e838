// SPDX-License-Identifier: Apache-2.0
// Tests the set of optimizer steps, the actions whose gradients they reduce,
// and the actions they must precede.
#include <gtest/gtest.h>

#include <vector>

#include "schedules/registry.h"
#include "schedules/validate.h"
#include "sim/graph/pipeline_graph.h"
#include "tests/sim/by_costs.h"
#include "tests/sim/hand_schedules.h"

namespace weir::sim::steps_test {

std::vector<std::vector<Step>> Plan(absl::string_view name,
                                    const schedules::ScheduleSpec& spec,
                                    ReductionMode mode,
                                    schedules::Schedule* schedule) {
  const auto generated = schedules::GenerateSchedule(name, spec);
  EXPECT_TRUE(generated.ok()) << generated.status();
  *schedule = *generated;
  const auto semantics = schedules::InterpretSchedule(*schedule);
  EXPECT_TRUE(semantics.ok()) << semantics.status();
  return PlanSteps(*schedule, *semantics, mode);
}

int Position(const schedules::Schedule& schedule, int rank,
             const schedules::Action& action) {
  const auto& actions = schedule.rank_actions[rank];
  for (size_t i = 0; i < actions.size(); ++i) {
    if (actions[i].op == action.op && actions[i].stage == action.stage &&
        actions[i].microbatch == action.microbatch) {
      return static_cast<int>(i);
    }
  }
  ADD_FAILURE() << schedules::ToString(action) << " is not on rank " << rank;
  return -1;
}

TEST(StepsTest, AFlushStepsOnceAtTheEnd) {
  schedules::Schedule schedule;
  const auto steps = Plan("gpipe", {3, 4, 1, 1}, REDUCTION_BLOCKING, &schedule);
  for (int rank = 0; rank < 3; ++rank) {
    ASSERT_EQ(steps[rank].size(), 1u);
    EXPECT_EQ(steps[rank][0].stage, rank);
    EXPECT_EQ(steps[rank][0].reduce_after, 7);
    EXPECT_EQ(steps[rank][0].before, 8);
  }
}

TEST(StepsTest, OverlappedChunksReduceAsSoonAsTheyAreDone) {
  for (ReductionMode mode : {REDUCTION_BLOCKING, REDUCTION_OVERLAPPED}) {
    schedules::Schedule schedule;
    const auto steps = Plan("interleaved-1f1b", {2, 4, 2, 1}, mode, &schedule);
    for (int rank = 0; rank < 2; ++rank) {
      ASSERT_EQ(steps[rank].size(), 2u);
      for (const Step& step : steps[rank]) {
        const int last =
            Position(schedule, rank, {schedules::Op::kBackward, step.stage, 3});
        EXPECT_EQ(step.reduce_after, mode == REDUCTION_BLOCKING ? 15 : last);
        EXPECT_EQ(step.before, 16);
      }
    }
  }
}

TEST(StepsTest, WithoutFlushTheNextActionWaits) {
  schedules::Schedule schedule;
  const auto steps =
      Plan("pipedream-2bw", {2, 3, 1, 3}, REDUCTION_BLOCKING, &schedule);
  for (int rank = 0; rank < 2; ++rank) {
    ASSERT_EQ(steps[rank].size(), 3u);
    for (int update = 0; update < 3; ++update) {
      const int last =
          Position(schedule, rank,
                   {schedules::Op::kBackward, rank, 3 * (update + 1) - 1});
      EXPECT_EQ(steps[rank][update].update, update);
      EXPECT_EQ(steps[rank][update].reduce_after, last);
      EXPECT_EQ(steps[rank][update].before, last + 1);
    }
  }
}

// With overlap, a step must end before a forward reads its result: in 2BW, the
// first forward of the batch after the next.
TEST(StepsTest, OverlappedStepsRunBeforeTheirFirstReader) {
  schedules::Schedule schedule;
  const auto steps =
      Plan("pipedream-2bw", {2, 3, 1, 4}, REDUCTION_OVERLAPPED, &schedule);
  for (int rank = 0; rank < 2; ++rank) {
    const auto end = static_cast<int>(schedule.rank_actions[rank].size());
    for (int update = 0; update < 4; ++update) {
      const int reader = 3 * (update + 2);
      EXPECT_EQ(steps[rank][update].before,
                reader < 12 ? Position(schedule, rank,
                                       {schedules::Op::kForward, rank, reader})
                            : end);
    }
  }
}

// No step runs between the two passes of a pair. The forward of the pair reads
// the weights from before the step.
TEST(StepsTest, RunBeforeOrAfterAWholePair) {
  schedules::Schedule schedule =
      ByHand({{0}}, 5,
             {Actions({"0F0", "0B0&", "0F1", "0B1&", "0F2", "0B2", "0F3",
                       "0F4&", "0B3", "0B4"})});
  schedule.flush = false;
  schedule.weights.microbatches_per_update = 1;
  ASSERT_TRUE(schedules::ValidateSchedule(schedule).ok());
  const auto semantics = schedules::InterpretSchedule(schedule);
  ASSERT_TRUE(semantics.ok()) << semantics.status();
  const std::vector<int> ends = {1, 3, 5, 8, 9};  // 0B0 to 0B4
  // `next`: right after the pass or pair that ends the update. `reader`: before
  // the pass or pair that first reads the new weights: 0F2, 0F3, 0F3, then
  // none.
  const std::vector<int> next = {3, 5, 6, 9, 10}, reader = {3, 6, 6, 10, 10};
  for (ReductionMode mode : {REDUCTION_BLOCKING, REDUCTION_OVERLAPPED}) {
    const auto steps = PlanSteps(schedule, *semantics, mode)[0];
    ASSERT_EQ(steps.size(), 5u);
    for (int update = 0; update < 5; ++update) {
      EXPECT_EQ(steps[update].update, update);
      EXPECT_EQ(steps[update].reduce_after, ends[update]);
      EXPECT_EQ(steps[update].before,
                mode == REDUCTION_BLOCKING ? next[update] : reader[update]);
    }
  }
}

// A rank updates its chunks together, so the host cost of an update occurs
// once.
TEST(StepsTest, ARankPaysOnceForAnUpdate) {
  ByCosts run{.schedule = BreadthFirst(1, 3, 1), .costs = OneStage(1, 2)};
  run.costs.stages[0].step.seconds = 0.75;
  run.costs.stages[0].step.update_seconds = 0.5;
  run.costs.stages.resize(3, run.costs.stages[0]);
  const CostsRun result(run);
  EXPECT_NEAR(result.Makespan(), 9 + 0.5 + 3 * 0.25, 1e-9);
  EXPECT_NEAR(result.Times(0).optimizer_seconds, 1.25, 1e-9);
}

}  // namespace weir::sim::steps_test
