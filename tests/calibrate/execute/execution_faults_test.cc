// SPDX-License-Identifier: Apache-2.0
// Checks that the comparison with the formulas detects wrong runtimes, wrong
// delays and other systems. Each of these differs by more than 1e-6 (3.6e-5 is
// the smallest observed difference). That is a million times the tolerance for
// correct replays, which stay below 1e-13. Reads of wrong versions are also
// named.
#include <gmock/gmock.h>

#include "calibrate/execute/execute_schedule.h"
#include "calibrate/execute/host_device.h"
#include "calibrate/execute/sequential.h"
#include "tests/calibrate/execute/tiny_execution.h"

namespace weir::calibrate::execution_faults_test {

using testing::HasSubstr;

constexpr double kCaught = 1e-6;

ExecutionPlan Plan(const std::string& name, int p, int m, int num_batches,
                   int num_chunks = 1) {
  ExecutionRequest request =
      TinyRequest(Generated(name, {.num_ranks = p,
                                   .num_microbatches = m,
                                   .num_chunks = num_chunks,
                                   .num_batches = num_batches}));
  if (request.schedule.flush) request.num_steps = 3;
  return PlanOf(request);
}

ExecutionRecord Executed(const ExecutionPlan& plan) {
  const auto device = MakeHostDevice(plan, {.concurrent = false});
  auto record = ExecuteSchedule(plan, device.get());
  EXPECT_TRUE(record.ok()) << record.status();
  return record.ok() ? *std::move(record) : ExecutionRecord();
}

SequentialRecord Train(const ExecutionPlan& plan) {
  auto record = TrainSequentially(plan);
  EXPECT_TRUE(record.ok()) << record.status();
  return record.ok() ? *std::move(record) : SequentialRecord();
}

TEST(ExecutionFaultsTest, DroppedStashIsCaught) {
  for (const auto& [name, p, m] :
       {std::tuple("pipedream", 3, 1), std::tuple("2bw", 2, 2),
        std::tuple("pipedream:vertical-sync=yes", 3, 1)}) {
    ExecutionPlan plan = Plan(name, p, m, 8);
    const SequentialRecord formula = Train(plan);
    EXPECT_LE(DifferenceOf(plan, Executed(plan), formula).weights, 1e-12);
    plan.faults.dropped_stash_stage = 0;
    plan.faults.dropped_stash_microbatch = 5;
    const ExecutionRecord record = Executed(plan);
    EXPECT_GE(DifferenceOf(plan, record, formula).weights, kCaught) << name;
    EXPECT_THAT(
        CheckVersions(plan, record).message(),
        testing::AllOf(HasSubstr("stage 0"), HasSubstr("microbatch 5")));
  }
}

TEST(ExecutionFaultsTest, EarlyUpdateIsCaught) {
  for (const auto& [name, batches] :
       {std::tuple("2bw", 4), std::tuple("gpipe", 1),
        std::tuple("pipemare", 4)}) {
    ExecutionPlan plan = Plan(name, 2, 3, batches);
    const SequentialRecord formula = Train(plan);
    plan.faults.early_update_stage = 1;
    plan.faults.early_update_by = 1;
    EXPECT_GE(DifferenceOf(plan, Executed(plan), formula).weights, kCaught)
        << name;
  }
}

TEST(ExecutionFaultsTest, EarlyUpdateIsReadWhereTheNewestIsRead) {
  ExecutionPlan plan = Plan("pipemare", 2, 3, 4);
  EXPECT_TRUE(CheckVersions(plan, Executed(plan)).ok());
  plan.faults.early_update_stage = 1;
  plan.faults.early_update_by = 1;
  EXPECT_THAT(CheckVersions(plan, Executed(plan)).message(),
              HasSubstr("stage 1"));
}

// The versions are correct, so only the values show the fault.
TEST(ExecutionFaultsTest, SwappedActivationsAreCaught) {
  for (const auto& [name, batches] :
       {std::tuple("gpipe", 1), std::tuple("2bw", 4), std::tuple("zb-h1", 1)}) {
    ExecutionPlan plan = Plan(name, 2, 3, batches);
    const SequentialRecord formula = Train(plan);
    plan.faults.swapped_stage = 0;
    plan.faults.swapped_microbatch = 1;
    const ExecutionRecord record = Executed(plan);
    EXPECT_GE(DifferenceOf(plan, record, formula).weights, kCaught) << name;
    EXPECT_TRUE(CheckVersions(plan, record).ok());
  }
}

// The schedule itself reads versions that its system does not read.
TEST(ExecutionFaultsTest, WrongPoliciesAreCaught) {
  const auto differs = [](ExecutionPlan plan, auto change) {
    const SequentialRecord formula = Train(plan);
    change(&plan.schedule.weights);
    return DifferenceOf(plan, Executed(plan), formula).weights;
  };
  EXPECT_GE(differs(Plan("2bw", 2, 2, 8),
                    [](schedules::WeightPolicy* w) { w->delay_updates = 2; }),
            kCaught);
  EXPECT_GE(differs(Plan("2bw", 2, 2, 8),
                    [](schedules::WeightPolicy* w) {
                      w->forward =
                          schedules::WeightPolicy::ForwardRead::kLatest;
                    }),
            kCaught);
  EXPECT_GE(differs(Plan("pipedream", 3, 1, 8),
                    [](schedules::WeightPolicy* w) {
                      w->backward =
                          schedules::WeightPolicy::BackwardRead::kLatest;
                    }),
            kCaught);
  EXPECT_GE(differs(Plan("pipemare", 2, 2, 8),
                    [](schedules::WeightPolicy* w) {
                      w->backward_distance[0] *= 0.5;
                    }),
            kCaught);
  EXPECT_GE(
      differs(Plan("spectrain", 3, 1, 8),
              [](schedules::WeightPolicy* w) { w->forward_distance[0] += 1; }),
      kCaught);
  EXPECT_GE(
      differs(Plan("xpipe", 3, 2, 8),
              [](schedules::WeightPolicy* w) {
                w->prediction =
                    schedules::WeightPolicy::Prediction::kForwardAndBackward;
              }),
      kCaught);
}

// For any two systems without a flush, the replay of one does not match the
// formula of the other, even if they differ only in the stash.
TEST(ExecutionFaultsTest, SystemsAreNotEachOthersFormulas) {
  const std::vector<std::string> names = {"pipedream",
                                          "pipedream:vertical-sync=yes",
                                          "2bw",
                                          "pipemare",
                                          "pipemare:correction=none",
                                          "pipemare:order=1f1b",
                                          "spectrain",
                                          "xpipe",
                                          "pb",
                                          "pb:mitigation=linear-prediction",
                                          "timeprest",
                                          "timeprest:ahead=minibatch"};
  for (const std::string& name : names) {
    ExecutionPlan plan = Plan(name, 3, 3, 5);
    const ExecutionRecord record = Executed(plan);
    for (const std::string& other : names) {
      plan = Plan(other, 3, 3, 5);
      const double difference = DifferenceOf(plan, record, Train(plan)).weights;
      if (other == name) {
        EXPECT_LE(difference, 1e-12) << name;
      } else {
        EXPECT_GE(difference, kCaught) << name << " against " << other;
      }
    }
  }
}

}  // namespace weir::calibrate::execution_faults_test
