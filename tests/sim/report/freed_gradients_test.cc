// SPDX-License-Identifier: Apache-2.0
// Memory of programs that free gradients after each optimizer step.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "schedules/registry.h"
#include "sim/bounds/least_memory.h"
#include "tests/sim/by_costs.h"

namespace weir::sim::freed_gradients_test {

// One stage: weights of 1000 bytes, gradients of 400.
ByCosts Freed(double saved_bytes, schedules::Schedule schedule) {
  ByCosts run{.schedule = std::move(schedule), .costs = OneStage(1, 2)};
  StageCosts& stage = run.costs.stages[0];
  stage.step.seconds = 0.5;
  stage.parameters.weight_bytes = 1000;
  stage.parameters.gradient_bytes = 400;
  stage.activations.saved_bytes = saved_bytes;
  run.costs.frees_gradients = true;
  return run;
}

// The backward of the only microbatch exchanges activations for gradients, so
// the larger of both counts.
TEST(FreedGradientsTest, ReplaceTheActivationsOfOneMicrobatch) {
  for (double saved : {100.0, 400.0, 900.0}) {
    const CostsRun run(Freed(saved, OnePass()));
    EXPECT_EQ(run.Memory(0).peak_bytes, 1000 + std::max(saved, 400.0));
    EXPECT_EQ(run.Memory(0).floor_bytes, 1000);
    EXPECT_EQ(run.Memory(0).final_bytes, 1000);
    EXPECT_LE(LeastPeakBytes(run.inputs())[0], run.Memory(0).peak_bytes);
  }
  ByCosts kept = Freed(900, OnePass());
  kept.costs.frees_gradients = false;
  EXPECT_EQ(CostsRun(kept).Memory(0).peak_bytes, 1000 + 900 + 400);
}

// Later microbatches add to the gradients of the first.
TEST(FreedGradientsTest, AreHeldDuringLaterMicrobatches) {
  const CostsRun run(
      Freed(900, ByHand({{0}}, 2, {Actions({"0F0", "0B0", "0F1", "0B1"})})));
  EXPECT_EQ(run.Memory(0).peak_bytes, 1000 + 400 + 900);
  EXPECT_EQ(LeastPeakBytes(run.inputs())[0], 1000 + 400 + 900);
}

// The weight gradient is complete after W, not after I.
TEST(FreedGradientsTest, AreAllocatedByTheWeightGradient) {
  ByCosts split =
      Freed(900, ByHand({{0}}, 1, {Actions({"0F0", "0I0", "0W0"})}));
  split.costs.stages[0].activations.weight_gradient_stash_bytes = 700;
  const CostsRun run(split);
  EXPECT_EQ(run.Memory(0).peak_bytes, 1000 + 900);
  EXPECT_EQ(run.Memory(0).samples.back().bytes, 1000);
  const auto& samples = run.Memory(0).samples;
  ASSERT_EQ(samples.size(), 4u);  // F, the end of I, of W and of the step
  EXPECT_EQ(samples[1].bytes, 1000 + 700);
  EXPECT_EQ(samples[2].bytes, 1000 + 400);
}

// The next batch begins without gradients.
TEST(FreedGradientsTest, AreFreedByEveryStep) {
  schedules::ScheduleSpec spec;
  spec.num_ranks = 1;
  spec.num_microbatches = 1;
  spec.num_batches = 3;
  const CostsRun run(
      Freed(900, schedules::GenerateSchedule("pipedream", spec).value()));
  EXPECT_EQ(run.Memory(0).peak_bytes, 1000 + 900);
  EXPECT_EQ(LeastPeakBytes(run.inputs())[0], 1000 + 900);
  EXPECT_EQ(run.Memory(0).final_bytes, 1000);
}

}  // namespace weir::sim::freed_gradients_test
