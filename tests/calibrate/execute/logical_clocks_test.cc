// SPDX-License-Identifier: Apache-2.0
// With one rank after another and passes of known seconds, the logical clocks
// are those of the longest path through the schedule.
#include <gmock/gmock.h>

#include "schedules/walk.h"
#include "tests/calibrate/execute/executions.h"

namespace weir::calibrate::logical_clocks_test {

constexpr double kExact = 1e-9;

// Returns the time of a pass. Later stages are slower.
double PassSeconds(int stage, ProgramPass pass) {
  switch (pass) {
    case ProgramPass::kForward:
      return 1 + 0.125 * stage;
    case ProgramPass::kBackwardInput:
      return 1.25 + 0.0625 * stage;
    case ProgramPass::kBackwardWeight:
      return 0.75;
    default:
      return 0;
  }
}

schedules::PassCosts CostsOf(int num_stages, double hop) {
  schedules::PassCosts costs;
  for (int stage = 0; stage < num_stages; ++stage) {
    schedules::StagePassCosts& pass = costs.stages.emplace_back();
    pass.forward = PassSeconds(stage, ProgramPass::kForward);
    pass.backward_input = PassSeconds(stage, ProgramPass::kBackwardInput);
    pass.backward_weight = PassSeconds(stage, ProgramPass::kBackwardWeight);
    pass.offload = 0;
  }
  costs.hop = hop;
  return costs;
}

ExecutionRecord Fake(const ExecutionPlan& plan) {
  const auto device =
      MakeHostDevice(plan, {.concurrent = false, .fake_seconds = PassSeconds});
  auto record = ExecuteSchedule(plan, device.get());
  EXPECT_TRUE(record.ok()) << record.status();
  return record.ok() ? *std::move(record) : ExecutionRecord();
}

// Returns true if copies of a stage wait for each other. This happens without a
// flush and is not part of the longest path through the passes.
bool CopiesWait(const schedules::Schedule& schedule) {
  return !schedule.flush && schedule.num_routes() > 1;
}

class LogicalClocksTest : public testing::TestWithParam<NamedShape> {};

TEST_P(LogicalClocksTest, AreTheLongestPath) {
  for (const double hop : {0.0, 0.25, 3.0}) {
    ExecutionRequest request =
        TinyRequest(Generated(GetParam().name, GetParam().spec), true);
    if (CopiesWait(request.schedule)) continue;
    request.link.latency_seconds = hop;
    const ExecutionPlan plan = PlanOf(request);
    const schedules::WalkTimes times = schedules::TimedWalk(
        plan.schedule, CostsOf(plan.schedule.num_stages, hop));
    const ExecutionRecord record = Fake(plan);
    ASSERT_EQ(record.steps.size(), 1u);
    double last = 0;
    for (int rank = 0; rank < plan.schedule.num_ranks; ++rank) {
      const auto& actions = record.steps[0].ranks[rank].actions;
      for (size_t i = 0; i < actions.size(); ++i) {
        ASSERT_NEAR(actions[i].start_seconds, times.start[rank][i], kExact)
            << "rank " << rank << " position " << i << " hop " << hop;
        ASSERT_NEAR(actions[i].end_seconds, times.end[rank][i], kExact);
        last = std::max(last, actions[i].end_seconds);
      }
    }
    EXPECT_NEAR(last, times.makespan(), kExact);
    if (plan.schedule.num_routes() == 1) {
      EXPECT_NEAR(record.steps[0].makespan_seconds, times.makespan(), kExact);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, LogicalClocksTest,
                         testing::ValuesIn(AllShapes()), [](const auto& info) {
                           return TestName(info.param.name);
                         });

// Two messages of 3 s each with a latency of 0.5 s: the bytes of the second
// follow those of the first, but its latency overlaps them.
TEST(LogicalClocksOfLinksTest, BytesOfAPairOfRanksGoOneAfterTheOther) {
  ExecutionRequest request = TinyRequest(Generated("gpipe", {2, 2}), true);
  ExecutionPlan plan = PlanOf(request);
  const StageProgram& first = *plan.programs[0];
  const auto bytes = static_cast<double>(first.buffers[first.output].bytes());
  plan.links.assign(4, {0.5, bytes / 3});
  const ExecutionRecord record = Fake(plan);
  const auto& transfers = record.steps[0].transfers;
  ASSERT_EQ(transfers.size(), 4u);
  const auto expect = [](const TransferRecord& transfer, double ready,
                         double start, double end) {
    EXPECT_NEAR(transfer.ready_seconds, ready, kExact);
    EXPECT_NEAR(transfer.start_seconds, start, kExact);
    EXPECT_NEAR(transfer.end_seconds, end, kExact);
  };
  expect(transfers[0], 1, 1, 4.5);
  expect(transfers[1], 2, 4, 7.5);
  EXPECT_EQ(transfers[0].bytes, bytes);
  EXPECT_TRUE(transfers[2].gradient);
}

}  // namespace weir::calibrate::logical_clocks_test
