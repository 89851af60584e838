// SPDX-License-Identifier: Apache-2.0
// Checks slack by prolonging passes and transfers of every schedule and running
// the graph again.
#include "sim/report/slack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/sim/short_runs.h"

namespace weir::sim::slack_test {
namespace {

double MakespanWith(OneRun* run, int32_t task, double seconds) {
  TaskGraph* tasks = &run->graph.tasks;
  const double before = tasks->amount(task);
  tasks->SetSeconds(task, before + seconds);
  const Recording again = *LongestPath(*tasks, run->network->links());
  tasks->SetSeconds(task, before);
  const auto ends = again.end_seconds();
  return *std::max_element(ends.begin(), ends.end());
}

// With given hops, transfers are timers too.
TEST(SlackTest, EverythingAbsorbsItsSlackAndNoMore) {
  Cases cases(11);
  int num_schedules = 0, num_slack = 0;
  for (const schedules::ScheduleKind& kind : schedules::AllScheduleKinds()) {
    SCOPED_TRACE(kind.name);
    const auto schedule = cases.Next(kind);
    if (!schedule.has_value()) continue;
    World world;
    world.costs = cases.CostsFor(schedule->num_stages);
    for (StageCosts& stage : world.costs.stages) {
      stage.communication.output_bytes = 0;
    }
    world.hop_seconds = cases.Seconds(0.1, 0.8);
    world.blocking = kind.name == "1f1b" && cases.Int(0, 1) == 0;
    OneRun run(*schedule, world);
    ASSERT_TRUE(run.recording.complete());
    const double makespan = run.Makespan();
    const std::vector<double> slack =
        SlackOfTasks(run.graph.tasks, run.recording);
    EXPECT_EQ(*std::min_element(slack.begin(), slack.end()), 0);
    ++num_schedules;
    const int num_tasks = run.graph.tasks.num_tasks();
    const int stride = std::max(num_tasks / 60, 1);
    for (int32_t task = 0; task < num_tasks; task += stride) {
      if (!run.graph.tasks.is_timer(task)) continue;
      if (slack[task] > 0) ++num_slack;
      EXPECT_NEAR(MakespanWith(&run, task, slack[task]), makespan,
                  1e-9 * makespan);
      EXPECT_NEAR(MakespanWith(&run, task, slack[task] + 0.5), makespan + 0.5,
                  1e-9 * makespan);
    }
    const ScheduleSlack all =
        SlackOfRun(*schedule, run.graph, run.recording, run.network->links());
    EXPECT_TRUE(all.is_exact);
    EXPECT_EQ(all.makespan_seconds, makespan);
    EXPECT_FALSE(all.passes.empty());
  }
  EXPECT_GE(num_schedules, 15);
  EXPECT_GE(num_slack, 100);
}

TEST(SlackTest, ResultsHaveTheSlackOfRanksOfTheFirstReplica) {
  ScheduleSlack slack;
  slack.makespan_seconds = 10;
  const auto add = [&](int replica, int rank, schedules::Op op,
                       double seconds) {
    PassSlack pass;
    pass.replica = replica;
    pass.rank = rank;
    pass.action.op = op;
    pass.slack_seconds = seconds;
    slack.passes.push_back(pass);
  };
  add(0, 1, schedules::Op::kForward, 1e-12);  // a rounding error
  add(0, 1, schedules::Op::kForward, 4);
  add(0, 1, schedules::Op::kForward, 2);
  add(0, 0, schedules::Op::kBackward, 3);
  add(1, 0, schedules::Op::kBackward, 9);
  TransferSlack transfer;
  transfer.gradient = true;
  transfer.slack_seconds = 5;
  slack.transfers.push_back(transfer);
  Result result;
  FillSlack(slack, &result);
  const RunSlack& all = result.run_slack();
  EXPECT_TRUE(all.is_exact());
  ASSERT_EQ(all.rows_size(), 3);
  EXPECT_EQ(all.rows(0).what(), "B");
  EXPECT_EQ(all.rows(0).count(), 1);
  EXPECT_EQ(all.rows(0).largest_seconds(), 3);
  EXPECT_EQ(all.rows(1).what(), "send B");
  EXPECT_EQ(all.rows(1).median_seconds(), 5);
  EXPECT_EQ(all.rows(2).rank(), 1);
  EXPECT_EQ(all.rows(2).count(), 3);
  EXPECT_EQ(all.rows(2).num_critical(), 1);
  EXPECT_EQ(all.rows(2).median_seconds(), 2);
  EXPECT_EQ(all.rows(2).largest_seconds(), 4);
}

}  // namespace
}  // namespace weir::sim::slack_test
