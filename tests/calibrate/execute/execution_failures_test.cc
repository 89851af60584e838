// SPDX-License-Identifier: Apache-2.0
// Checks that a failing replay ends and reports which rank waited for what.
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "calibrate/execute/board.h"
#include "calibrate/execute/execution_order.h"
#include "tests/calibrate/execute/executions.h"
#include "tests/calibrate/execute/wrapped_device.h"

namespace weir::calibrate::execution_failures_test {

using testing::AllOf;
using testing::HasSubstr;

ExecutionPlan SmallPlan(const char* name, const schedules::ScheduleSpec& spec) {
  return PlanOf(TinyRequest(Generated(name, spec), true));
}

// Never announces the message with this key.
class LossyBoard : public Board {
 public:
  LossyBoard(const ExecutionPlan& plan, const ExecutionOrder& order,
             const MessageKey& lost)
      : Board(plan.schedule, order), lost_(lost) {}

  void Post(const MessageKey& key, const CopyEvents& copy, int version,
            bool last_of_version) override {
    if (key.gradient == lost_.gradient && key.stage == lost_.stage &&
        key.microbatch == lost_.microbatch) {
      return;
    }
    Board::Post(key, copy, version, last_of_version);
  }

 private:
  const MessageKey lost_;
};

absl::StatusOr<ExecutionRecord> ExecuteWithLoss(
    const ExecutionPlan& plan, bool threads, const MessageKey& lost,
    const ExecutionHooks& hooks = {}) {
  const auto device = MakeHostDevice(plan, {.concurrent = threads});
  const ExecutionOrder order =
      MakeExecutionOrder(plan, schedules::Dependencies(plan.schedule));
  LossyBoard board(plan, order, lost);
  return ExecuteOrder(plan, order, &board, device.get(), hooks);
}

TEST(ExecutionFailuresTest, LostTransferIsNamedByAllWhoWait) {
  ExecutionPlan plan = SmallPlan("1f1b", {3, 4});
  plan.timeout_seconds = 0.2;
  for (const bool threads : {true, false}) {
    const absl::Status status =
        ExecuteWithLoss(plan, threads, {.stage = 1, .microbatch = 2}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_THAT(status.message(),
                AllOf(HasSubstr("rank 2 waits in 2F2 (position 4) for the "
                                "activations of 1F2 from rank 1"),
                      HasSubstr("rank 1 waits in 1B2 (position 6) for the "
                                "gradient of 2B2 from rank 2"),
                      HasSubstr("rank 0 waits in 0B2 (position 6) for the "
                                "gradient of 1B2 from rank 1")));
  }
}

TEST(ExecutionFailuresTest, CopiesThatWaitForEachOtherAreNamed) {
  ExecutionPlan plan = SmallPlan("chimera", {2, 2});
  plan.timeout_seconds = 0.2;
  const absl::Status status =
      ExecuteWithLoss(plan, true, {.stage = 0, .microbatch = 0}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(status.message(), HasSubstr("rank 1 waits in 1F0"));
}

TEST(ExecutionFailuresTest, DeadlockIsRefusedBeforeAnythingRuns) {
  ExecutionPlan plan = SmallPlan("gpipe", {2, 2});
  // Rank 0's first backward comes before the forward that rank 1 needs first.
  auto& actions = plan.schedule.rank_actions[0];
  std::swap(actions[1], actions[3]);  // 0F0, 0B0, 0B1, 0F1
  std::swap(actions[2], actions[3]);
  plan.schedule.name = "by hand";
  const absl::Status status = TryReplay(plan, true).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("deadlock"));
}

// Fails to allocate, or stops working.
class FailingRank : public ForwardingRank {
 public:
  using ForwardingRank::ForwardingRank;

  absl::StatusOr<void*> AllocateMemory(int64_t num_elements,
                                       ElementFormat format,
                                       absl::string_view what) override {
    if (takes_left >= 0 && takes_left-- == 0) {
      return absl::ResourceExhaustedError(absl::StrCat("no room for ", what));
    }
    return ForwardingRank::AllocateMemory(num_elements, format, what);
  }
  bool HasPassed(const RankEventPtr& event) override {
    return !stuck && ForwardingRank::HasPassed(event);
  }

  int takes_left = -1;  // allocations until memory is full; negative: no limit
  bool stuck = false;   // no further work ends
};

TEST(ExecutionFailuresTest, MemoryThatIsNotThereNamesRankAndAction) {
  const ExecutionPlan plan = SmallPlan("1f1b", {3, 4});
  for (const bool threads : {true, false}) {
    WrappedDevice<FailingRank> device(plan, threads);
    device.ranks[1]->takes_left = 40;
    const absl::Status status = ExecuteSchedule(plan, &device).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(status.message(),
                AllOf(HasSubstr("rank 1, 1"), HasSubstr("(position "),
                      HasSubstr("no room for ")));
  }
}

TEST(ExecutionFailuresTest, DeviceThatStandsStillIsNamed) {
  ExecutionPlan plan = SmallPlan("gpipe", {2, 2});
  plan.timeout_seconds = 0.1;
  WrappedDevice<FailingRank> device(plan, true);
  device.ranks[1]->stuck = true;
  const absl::Status status = ExecuteSchedule(plan, &device).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(status.message(), "rank 1 has not ended 1F0 (position 0)");
}

TEST(ExecutionFailuresTest, StopsWhenAsked) {
  const ExecutionPlan plan = SmallPlan("1f1b", {2, 4});
  for (const bool threads : {true, false}) {
    std::atomic<int> asked = 0;
    ExecutionHooks hooks;
    hooks.stop = [&asked] { return ++asked > 3; };
    // It would wait for a minute.
    const auto record =
        ExecuteWithLoss(plan, threads, {.stage = 0, .microbatch = 3}, hooks);
    EXPECT_EQ(record.status().code(), absl::StatusCode::kCancelled);
  }
}

TEST(ExecutionFailuresTest, StopsAmidALongTransfer) {
  ExecutionRequest request = TinyRequest(Generated("1f1b", {2, 4}), true);
  request.link.latency_seconds = 40;
  const ExecutionPlan plan = PlanOf(request);
  std::atomic<int> asked = 0;
  ExecutionHooks hooks;
  hooks.stop = [&asked] { return ++asked > 3; };
  const auto device = MakeHostDevice(plan, {});
  EXPECT_EQ(ExecuteSchedule(plan, device.get(), hooks).status().code(),
            absl::StatusCode::kCancelled);
}

TEST(ExecutionFailuresTest, StepsAreTold) {
  ExecutionRequest request = TinyRequest(Generated("gpipe", {2, 2}));
  request.num_steps = 3;
  std::vector<int> steps;
  ExecutionHooks hooks;
  hooks.step_done = [&steps](int step, const StepRecord& record) {
    steps.push_back(step);
    EXPECT_EQ(record.losses.size(), 2u);
  };
  const ExecutionPlan plan = PlanOf(request);
  const auto device = MakeHostDevice(plan, {});
  EXPECT_TRUE(ExecuteSchedule(plan, device.get(), hooks).ok());
  EXPECT_THAT(steps, testing::ElementsAre(0, 1, 2));
}

// Checks that the allocated bytes do not depend on the order of threads.
TEST(ExecutionFailuresTest, WhatIsTakenIsAPropertyOfTheOrder) {
  const ExecutionPlan plan = SmallPlan("1f1b", {3, 6});
  const ExecutionRecord first = Executed(plan, true);
  const ExecutionRecord serial = Executed(plan, false);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(first.steps[0].ranks[rank].taken_peak_bytes,
              serial.steps[0].ranks[rank].taken_peak_bytes);
  }
}

}  // namespace weir::calibrate::execution_failures_test
