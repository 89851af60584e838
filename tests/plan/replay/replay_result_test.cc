// SPDX-License-Identifier: Apache-2.0
// Compares results of replays with known times with the closed forms of the
// schedules.
#include "plan/replay/replay_result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calibrate/execute/execute_schedule.h"
#include "calibrate/execute/host_device.h"
#include "plan/replay/scenario_plan.h"
#include "plan/replay/training_check.h"
#include "results/validate.h"
#include "tests/calibrate/execute/wrapped_device.h"

namespace weir::plan::replay_result_test {

constexpr int kRanks = 4, kMicrobatches = 8;
constexpr double kForward = 1, kBackward = 2;  // seconds per pass

struct Replayed {
  scenarios::ResolvedScenario scenario;
  calibrate::ExecutionPlan plan;
  calibrate::ExecutionRecord record;
  TrainingCheck check;

  Result result() const {
    auto result = ResultOfReplay({scenario, plan, record, {}, true, check});
    EXPECT_TRUE(result.ok()) << result.status();
    return *std::move(result);
  }
};

// Replays with 1 s each for F, I and W, and no time for updates and messages.
Replayed ReplayOf(const std::string& schedule, int num_steps) {
  Scenario scenario = *scenarios::LoadScenario("replay-cpu");
  scenario.set_schedule(schedule);
  Replayed replayed;
  replayed.scenario = *scenarios::ResolveScenario("test", scenario);
  ReplaySettings settings;
  settings.num_steps = num_steps;
  replayed.plan = *PlanOfScenario(replayed.scenario, settings);
  for (calibrate::LinkSpec& link : replayed.plan.links)
    link = calibrate::LinkSpec();
  calibrate::HostDeviceOptions options;
  options.concurrent = false;
  options.fake_seconds = [](int, calibrate::ProgramPass pass) {
    return pass == calibrate::ProgramPass::kOptimizer ? 0.0 : 1.0;
  };
  const auto device = calibrate::MakeHostDevice(replayed.plan, options);
  auto record = calibrate::ExecuteSchedule(replayed.plan, device.get());
  EXPECT_TRUE(record.ok()) << record.status();
  replayed.record = *std::move(record);
  return replayed;
}

TEST(ReplayResultTest, GPipeHasTheBubbleOfItsPaper) {
  const Result result = ReplayOf("gpipe", 1).result();
  EXPECT_TRUE(results::ValidateResult("result", result).ok());
  const double batch = (kMicrobatches + kRanks - 1) * (kForward + kBackward);
  EXPECT_NEAR(result.makespan_seconds(), batch, 1e-9 * batch);
  EXPECT_NEAR(result.batch_seconds(), batch, 1e-9 * batch);
  EXPECT_NEAR(result.idle_ratio(),
              (kRanks - 1.0) / (kMicrobatches + kRanks - 1), 1e-9);
  EXPECT_EQ(result.method(), "replay");
  EXPECT_EQ(result.weight_versions(), 1u);
  for (const RankResult& rank : result.ranks()) {
    EXPECT_NEAR(rank.peak_activation_microbatches(), kMicrobatches, 1e-9);
    EXPECT_NEAR(rank.busy_seconds(), kMicrobatches * (kForward + kBackward),
                1e-9);
  }
  EXPECT_EQ(result.timeline().actions().gpu_size(),
            kRanks * (2 * kMicrobatches + 1));
}

TEST(ReplayResultTest, PipeDreamHoldsItsVersions) {
  const Result result = ReplayOf("pipedream", 1).result();
  for (const RankResult& rank : result.ranks()) {
    EXPECT_EQ(rank.weight_versions(), kRanks - rank.rank());
    EXPECT_EQ(rank.staleness_updates(), kRanks - 1 - rank.rank());
  }
  // The pipeline is full in the steady state.
  EXPECT_NEAR(result.batch_seconds(), kMicrobatches * (kForward + kBackward),
              1e-9);
  EXPECT_NEAR(result.idle_ratio(), 0, 1e-9);
  EXPECT_EQ(result.replay().losses_size(),
            static_cast<int>(result.num_batches()));
}

TEST(ReplayResultTest, TheStepShownIsTheOneWithTheMedianMakespan) {
  Replayed replayed = ReplayOf("1f1b", 3);
  for (int step = 0; step < 3; ++step) {
    replayed.record.steps[step].makespan_seconds = 100.0 + (step + 1) % 3;
  }
  EXPECT_EQ(MedianStep(replayed.record.steps), 0);
  EXPECT_EQ(replayed.result().makespan_seconds(), 101);
  EXPECT_EQ(replayed.result().replay().step_seconds_size(), 3);
}

TEST(ReplayResultTest, WaitingForAMessageUnderWayIsExposed) {
  Replayed replayed = ReplayOf("gpipe", 1);
  for (int from = 0; from < kRanks; ++from) {
    for (int to = 0; to < kRanks; ++to) {
      replayed.plan.links[from * kRanks + to].latency_seconds = 0.25;
    }
  }
  calibrate::HostDeviceOptions options;
  options.concurrent = false;
  options.fake_seconds = [](int, calibrate::ProgramPass pass) {
    return pass == calibrate::ProgramPass::kOptimizer ? 0.0 : 1.0;
  };
  const auto device = calibrate::MakeHostDevice(replayed.plan, options);
  replayed.record = *calibrate::ExecuteSchedule(replayed.plan, device.get());
  const Result result = replayed.result();
  // The last rank waits only for the first activation, the first rank for the
  // gradients.
  EXPECT_NEAR(result.ranks(kRanks - 1).exposed_communication_seconds(), 0.25,
              1e-9);
  EXPECT_NEAR(result.makespan_seconds(),
              (kMicrobatches + kRanks - 1) * 3 + 2 * (kRanks - 1) * 0.25, 1e-9);
}

absl::StatusOr<std::unique_ptr<calibrate::ExecutionDevice>> OpenHost(
    const calibrate::ExecutionPlan& plan) {
  return calibrate::MakeHostDevice(plan, {.concurrent = false});
}

TEST(TrainingCheckTest, AReplayIsComparedOnTheDeviceThatIsOpened) {
  Replayed replayed = ReplayOf("zb-h1", 3);
  const TrainingTolerance tolerance =
      GpuTolerance(calibrate::ElementFormat::kBf16, SGD_MOMENTUM);
  std::vector<int> num_ranks;
  const auto open = [&](const calibrate::ExecutionPlan& plan) {
    num_ranks.push_back(plan.schedule.num_ranks);
    return OpenHost(plan);
  };
  const auto check =
      CheckTraining(replayed.plan, replayed.record, open, tolerance);
  ASSERT_TRUE(check.ok()) << check.status();
  EXPECT_EQ(num_ranks, std::vector<int>{1});
  EXPECT_TRUE(check->holds());
  EXPECT_LE(check->difference.weights, 1e-12);
  EXPECT_LE(check->difference.losses, 1e-12);
  EXPECT_EQ(check->tolerance.change, 4 * 0x1p-9);

  replayed.record.weights[1][5] += 1;
  const auto planted =
      CheckTraining(replayed.plan, replayed.record, OpenHost, tolerance);
  ASSERT_TRUE(planted.ok());
  EXPECT_FALSE(planted->holds());
  EXPECT_EQ(planted->difference.worst_stage, 1);
}

TEST(TrainingCheckTest, WhereMemoryDoesNotSufficeNothingIsCompared) {
  const Replayed replayed = ReplayOf("pipedream", 1);
  const auto check = CheckTraining(
      replayed.plan, replayed.record,
      [](const calibrate::ExecutionPlan&)
          -> absl::StatusOr<std::unique_ptr<calibrate::ExecutionDevice>> {
        return absl::ResourceExhaustedError("the GPU is full");
      },
      kHostTolerance);
  ASSERT_TRUE(check.ok()) << check.status();
  EXPECT_TRUE(check->holds());
  EXPECT_EQ(check->why_not, "the GPU is full");
}

// Updates stage 1 with gradients of twice their size.
class DoublingRank : public calibrate::ForwardingRank {
 public:
  using ForwardingRank::ForwardingRank;
  absl::Status Update(int stage, const calibrate::StageOptimizer& optimizer,
                      int step, const void* old_weights,
                      const calibrate::Buffers& buffers) override {
    calibrate::StageOptimizer changed = optimizer;
    if (stage == 1) changed.gradient_scale *= 2;
    return ForwardingRank::Update(stage, changed, step, old_weights, buffers);
  }
};

TEST(TrainingCheckTest, APlantedFaultIsCaughtOnTheHost) {
  Replayed replayed = ReplayOf("pipedream-2bw", 1);
  const auto right =
      CheckTraining(replayed.plan, replayed.record, OpenHost, kHostTolerance);
  ASSERT_TRUE(right.ok()) << right.status();
  EXPECT_TRUE(right->holds());
  calibrate::WrappedDevice<DoublingRank> device(replayed.plan,
                                                /*threads=*/false);
  const auto wrong = calibrate::ExecuteSchedule(replayed.plan, &device);
  ASSERT_TRUE(wrong.ok()) << wrong.status();
  const auto check =
      CheckTraining(replayed.plan, *wrong, OpenHost, kHostTolerance);
  ASSERT_TRUE(check.ok()) << check.status();
  EXPECT_FALSE(check->holds());
}

}  // namespace weir::plan::replay_result_test
