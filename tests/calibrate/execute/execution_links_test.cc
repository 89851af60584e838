// SPDX-License-Identifier: Apache-2.0
// Runs ranks as threads with slow links and checks that received data is used
// only after it has arrived.
#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "schedules/dependencies.h"
#include "tests/calibrate/execute/executions.h"

namespace weir::calibrate::execution_links_test {

constexpr double kRounding = 1e-9;

class ExecutionLinksTest : public testing::TestWithParam<NamedShape> {};

TEST_P(ExecutionLinksTest, InputsArriveBeforeTheyAreUsed) {
  ExecutionRequest request =
      TinyRequest(Generated(GetParam().name, GetParam().spec), true);
  request.link = {2e-4, 1e7};
  const ExecutionPlan plan = PlanOf(request);
  const ExecutionRecord record = Executed(plan, true);
  ASSERT_EQ(record.steps.size(), 1u);
  const StepRecord& step = record.steps[0];
  const schedules::Dependencies dependencies(plan.schedule);
  std::map<std::pair<int, int>, double> free;
  for (const TransferRecord& transfer : step.transfers) {
    EXPECT_GE(transfer.start_seconds, transfer.ready_seconds - kRounding);
    EXPECT_NEAR(transfer.end_seconds - transfer.start_seconds,
                request.link.SecondsOf(transfer.bytes), kRounding);
    double& before = free[{transfer.from_rank, transfer.to_rank}];
    EXPECT_GE(transfer.start_seconds, before - kRounding);
    before = transfer.start_seconds + transfer.bytes / 1e7;
    const schedules::Place user = dependencies.Find(
        transfer.gradient ? schedules::Op::kBackward : schedules::Op::kForward,
        transfer.stage + (transfer.gradient ? -1 : 1), transfer.microbatch);
    ASSERT_EQ(user.rank, transfer.to_rank);
    EXPECT_GE(step.ranks[user.rank].actions[user.position].start_seconds,
              transfer.end_seconds - kRounding);
  }
  for (const RankRecord& rank : step.ranks) {
    for (size_t i = 0; i < rank.actions.size(); ++i) {
      EXPECT_LE(rank.actions[i].start_seconds, rank.actions[i].end_seconds);
      EXPECT_LE(rank.actions[i].end_seconds, step.makespan_seconds + kRounding);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, ExecutionLinksTest,
                         testing::ValuesIn(AllShapes()), [](const auto& info) {
                           return TestName(info.param.name);
                         });

}  // namespace weir::calibrate::execution_links_test
