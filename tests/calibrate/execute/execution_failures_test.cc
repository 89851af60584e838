// SPDX-License-Identifier: Apache-2.0
// Checks that a failing replay ends and reports which rank waited for what.
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/calibrate/execute/executions.h"

namespace weir::calibrate::execution_failures_test {

using testing::AllOf;
using testing::HasSubstr;

ExecutionPlan SmallPlan(const char* name, const schedules::ScheduleSpec& spec) {
  return PlanOf(TinyRequest(Generated(name, spec), true));
}

TEST(ExecutionFailuresTest, LostTransferIsNamedByAllWhoWait) {
  ExecutionPlan plan = SmallPlan("1f1b", {3, 4});
  plan.faults.lost_stage = 1;
  plan.faults.lost_microbatch = 2;
  plan.timeout_seconds = 0.2;
  for (const bool threads : {true, false}) {
    const absl::Status status = TryReplay(plan, threads).status();
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
  plan.faults.lost_stage = 0;
  plan.faults.lost_microbatch = 0;
  plan.timeout_seconds = 0.2;
  const absl::Status status = TryReplay(plan, true).status();
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

// Forwards to the host's rank, except for the failures that a test injects.
class WrappedRank : public RankDevice {
 public:
  explicit WrappedRank(RankDevice* rank) : rank_(*rank) {}
  absl::StatusOr<void*> AllocateMemory(int64_t num_elements,
                                       ElementFormat format,
                                       absl::string_view what) override {
    if (takes_left >= 0 && takes_left-- == 0) {
      return absl::ResourceExhaustedError(absl::StrCat("no room for ", what));
    }
    return rank_.AllocateMemory(num_elements, format, what);
  }
  absl::Status FreeMemory(void* memory) override {
    return rank_.FreeMemory(memory);
  }
  void* ElementAt(void* memory, int64_t index, ElementFormat format) override {
    return rank_.ElementAt(memory, index, format);
  }
  absl::Status Run(int stage, StagePass pass, int op, uint64_t seed,
                   const Buffers& buffers) override {
    return rank_.Run(stage, pass, op, seed, buffers);
  }
  absl::Status Update(int stage, const StageOptimizer& optimizer, int step,
                      const void* old_weights,
                      const Buffers& buffers) override {
    return rank_.Update(stage, optimizer, step, old_weights, buffers);
  }
  absl::Status Estimate(int stage, const StageOptimizer& optimizer, int step,
                        double distance, const void* weights,
                        const void* average, const Buffers& buffers,
                        void* estimate) override {
    return rank_.Estimate(stage, optimizer, step, distance, weights, average,
                          buffers, estimate);
  }
  absl::Status Average(int stage, double decay, const void* old_weights,
                       const void* new_weights, void* average) override {
    return rank_.Average(stage, decay, old_weights, new_weights, average);
  }
  absl::Status Add(int64_t n, const void* addend, void* sum) override {
    return rank_.Add(n, addend, sum);
  }
  absl::Status Clear(int64_t n, ElementFormat format, void* memory) override {
    return rank_.Clear(n, format, memory);
  }
  absl::Status Upload(absl::Span<const double> values, ElementFormat format,
                      void* to) override {
    return rank_.Upload(values, format, to);
  }
  absl::StatusOr<std::vector<double>> Download(const void* from, int64_t n,
                                               ElementFormat format) override {
    return rank_.Download(from, n, format);
  }
  absl::StatusOr<RankEventPtr> Now() override { return rank_.Now(); }
  absl::Status WaitForEvent(const RankEventPtr& moment) override {
    return rank_.WaitForEvent(moment);
  }
  absl::StatusOr<CopyEvents> Send(RankDevice* to,
                                  absl::Span<const CopyPiece> pieces, int64_t n,
                                  ElementFormat format, const LinkSpec& link,
                                  int bits,
                                  const RankEventPtr& ready) override {
    return rank_.Send(&static_cast<WrappedRank*>(to)->rank_, pieces, n, format,
                      link, bits, ready);
  }
  absl::StatusOr<CopyEvents> ToHost(int64_t slot, int64_t n,
                                    ElementFormat format,
                                    const RankEventPtr& ready,
                                    const void* from) override {
    return rank_.ToHost(slot, n, format, ready, from);
  }
  absl::StatusOr<CopyEvents> FromHost(int64_t slot, int64_t n,
                                      ElementFormat format,
                                      absl::Span<const RankEventPtr> ready,
                                      void* into) override {
    return rank_.FromHost(slot, n, format, ready, into);
  }
  absl::Status Finish() override { return rank_.Finish(); }
  absl::StatusOr<double> SecondsOf(const RankEventPtr& moment) override {
    return rank_.SecondsOf(moment);
  }
  bool HasPassed(const RankEventPtr& moment) override {
    return !stuck && rank_.HasPassed(moment);
  }
  absl::StatusOr<double> PeakBytes() override { return rank_.PeakBytes(); }
  absl::Status ResetPeak() override { return rank_.ResetPeak(); }

  int takes_left = -1;  // allocations until memory is full; negative: no limit
  bool stuck = false;   // no further work ends

 private:
  RankDevice& rank_;
};

class WrappedDevice : public ExecutionDevice {
 public:
  WrappedDevice(const ExecutionPlan& plan, bool threads)
      : device_(MakeHostDevice(plan, {.concurrent = threads})) {
    for (int rank = 0; rank < plan.schedule.num_ranks; ++rank) {
      ranks.push_back(std::make_unique<WrappedRank>(device_->rank(rank)));
    }
  }
  RankDevice* rank(int rank) override { return ranks[rank].get(); }
  bool concurrent() const override { return device_->concurrent(); }
  absl::Status Start() override { return device_->Start(); }
  const Provenance& provenance() const override {
    return device_->provenance();
  }
  std::string description() const override { return device_->description(); }

  std::vector<std::unique_ptr<WrappedRank>> ranks;

 private:
  std::unique_ptr<ExecutionDevice> device_;
};

TEST(ExecutionFailuresTest, MemoryThatIsNotThereNamesRankAndAction) {
  const ExecutionPlan plan = SmallPlan("1f1b", {3, 4});
  for (const bool threads : {true, false}) {
    WrappedDevice device(plan, threads);
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
  WrappedDevice device(plan, true);
  device.ranks[1]->stuck = true;
  const absl::Status status = ExecuteSchedule(plan, &device).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(status.message(), "rank 1 has not ended 1F0 (position 0)");
}

TEST(ExecutionFailuresTest, StopsWhenAsked) {
  ExecutionPlan plan = SmallPlan("1f1b", {2, 4});
  plan.faults.lost_stage = 0;  // it would wait for a minute
  plan.faults.lost_microbatch = 3;
  for (const bool threads : {true, false}) {
    std::atomic<int> asked = 0;
    ExecutionHooks hooks;
    hooks.stop = [&asked] { return ++asked > 3; };
    const auto device = MakeHostDevice(plan, {.concurrent = threads});
    const auto record = ExecuteSchedule(plan, device.get(), hooks);
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
