// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/execution_plan.h"

#include <gmock/gmock.h>

#include <cmath>

#include "base/size_limits.h"
#include "calibrate/execute/host_memory.h"
#include "tests/calibrate/execute/tiny_execution.h"

namespace weir::calibrate::execution_plan_test {

using testing::HasSubstr;

TEST(ExecutionPlanTest, HasEveryStage) {
  ExecutionRequest request = TinyRequest(
      Generated("interleaved-1f1b",
                {.num_ranks = 2, .num_microbatches = 4, .num_chunks = 2}));
  request.link = {.latency_seconds = 1, .bytes_per_second = 2};
  const ExecutionPlan plan = PlanOf(request);
  EXPECT_EQ(plan.first_layer, (std::vector<int>{0, 2, 3, 4, 6}));
  ASSERT_EQ(plan.programs.size(), 4U);
  ASSERT_EQ(plan.optimizers.size(), 4U);
  EXPECT_EQ(plan.optimizers[3].gradient_scale, 0.25);
  EXPECT_EQ(plan.link(1, 0).bytes_per_second, 2);
  EXPECT_EQ(plan.tied.num_elements, 13 * 8);
  EXPECT_EQ(plan.tied.first_offset, 0);
  // The last stage's parameters: a block, the head's norm (gain, shift), then
  // the tied table.
  const int64_t last = plan.programs[3]->buffers[0].num_elements;
  EXPECT_EQ(plan.tied.last_offset, last - plan.tied.num_elements);
}

TEST(ExecutionPlanTest, OneStageTiesNothing) {
  const ExecutionPlan plan = PlanOf(
      TinyRequest(Generated("gpipe", {.num_ranks = 1, .num_microbatches = 2})));
  EXPECT_EQ(plan.tied.num_elements, 0);
}

TEST(ExecutionPlanTest, ReplicasAverageOverAllOfTheirMicrobatches) {
  const ExecutionPlan plan =
      PlanOf(TinyRequest(Generated("pipedream:replicas=2-1",
                                   {.num_ranks = 3, .num_microbatches = 6}),
                         true));
  EXPECT_EQ(plan.optimizers[0].gradient_scale, 0.5);
  EXPECT_EQ(plan.optimizers[1].gradient_scale, 1);
}

// Kosson et al., section 3: a = m^D, b = (1 - m^D) / (1 - m), D = 2(S-1-s).
TEST(ExecutionPlanTest, SpikeCompensationWeighsVelocityAndGradient) {
  const ExecutionPlan plan = PlanOf(TinyRequest(
      Generated("pb:mitigation=spike-compensation",
                {.num_ranks = 3, .num_microbatches = 1, .num_batches = 8}),
      true));
  for (int stage = 0; stage < 3; ++stage) {
    double a = 1, b = 0;
    for (int i = 0; i < 2 * (2 - stage); ++i) {
      b += a;
      a *= 0.9;
    }
    EXPECT_NEAR(plan.optimizers[stage].velocity_weight, a, 1e-15);
    EXPECT_NEAR(plan.optimizers[stage].gradient_weight, b, 1e-14);
  }
}

// Yang et al., T1: alpha / tau^(1 - min(k/K, 1)).
TEST(ExecutionPlanTest, PipeMareAnnealsItsRates) {
  const schedules::ScheduleSpec spec{
      .num_ranks = 3, .num_microbatches = 2, .num_batches = 8};
  const ExecutionPlan plan =
      PlanOf(TinyRequest(Generated("pipemare:annealing=10", spec), true));
  for (int stage = 0; stage < 3; ++stage) {
    EXPECT_EQ(plan.optimizers[stage].delay, (2 * (2 - stage) + 1) / 2.0);
    EXPECT_EQ(plan.optimizers[stage].delay_steps, 10);
  }
  EXPECT_EQ(PlanOf(TinyRequest(Generated("pipemare", spec)))
                .optimizers[0]
                .delay_steps,
            0);
  EXPECT_THAT(
      schedules::GenerateSchedule("pipemare:annealing=10:order=1f1b", spec)
          .status()
          .message(),
      HasSubstr("annealing is above 0"));
}

// Checks that one message reports all problems.
TEST(ExecutionPlanTest, RefusesWhatReplaysDoNot) {
  ExecutionRequest request = TinyRequest(Generated(
      "spectrain", {.num_ranks = 2, .num_microbatches = 1, .num_batches = 4}));
  request.num_steps = 3;
  request.first_layer = {0, 4};
  request.optimizer.momentum = 1;
  const absl::Status status = MakeExecutionPlan(request).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  for (const char* part :
       {"num_steps is 3, expected 1", "first_layer is 0 4", "momentum is 1"}) {
    EXPECT_THAT(status.message(), HasSubstr(part));
  }
}

TEST(ExecutionPlanTest, RefusesTiedTablesThatUpdateApart) {
  const ExecutionRequest request = TinyRequest(Generated(
      "pipedream:replicas=2-1", {.num_ranks = 3, .num_microbatches = 6}));
  EXPECT_THAT(MakeExecutionPlan(request).status().message(),
              HasSubstr("the first stage updates after 2 microbatches, the "
                        "last after 1"));
}

TEST(ExecutionPlanTest, RefusesTiedTablesThatStepDifferently) {
  for (const char* name :
       {"pb:mitigation=spike-compensation", "pipemare:annealing=10"}) {
    const ExecutionRequest request = TinyRequest(Generated(
        name, {.num_ranks = 2, .num_microbatches = 1, .num_batches = 4}));
    EXPECT_THAT(MakeExecutionPlan(request).status().message(),
                HasSubstr("different update rules"));
  }
}

TEST(ExecutionPlanTest, RefusesWhatStagesDoNot) {
  ExecutionRequest request =
      TinyRequest(Generated("gpipe", {.num_ranks = 2, .num_microbatches = 2}));
  request.model.mutable_transformer()->set_num_experts(4);
  EXPECT_FALSE(MakeExecutionPlan(request).ok());
  request =
      TinyRequest(Generated("gpipe", {.num_ranks = 3, .num_microbatches = 2}));
  request.model = TinyGpt(2);  // fewer blocks than stages
  EXPECT_FALSE(MakeExecutionPlan(request).ok());
}

TEST(ExecutionPlanTest, ATrainingThatTakesTooLongIsRefusedWithAnEstimate) {
  const ExecutionPlan plan = PlanOf(
      TinyRequest(Generated("gpipe", {.num_ranks = 2, .num_microbatches = 4})));
  EXPECT_TRUE(CheckHostSize(plan).ok());
  const ScopedSizeLimits limits({1e12, 1e-9});
  const std::string message(CheckHostSize(plan, 2).message());
  EXPECT_THAT(message, HasSubstr("is too large: 2 trainings of"));
  EXPECT_THAT(message, HasSubstr("steps of 4 microbatches"));
  EXPECT_THAT(message, HasSubstr("--gbs"));
}

}  // namespace weir::calibrate::execution_plan_test
