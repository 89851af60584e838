// SPDX-License-Identifier: Apache-2.0
#include "sim/report/critical_path.h"

#include <gtest/gtest.h>

namespace weir::sim::critical_path_test {

// Two passes of 2 s and 3 s with a transfer of 4 s between them, an optimizer
// step of 1 s, and a third pass of 5 s that no task waits for.
TEST(CriticalPathTest, AddsUpWhatTheLastTaskWaitedFor) {
  PipelineGraph graph;
  TaskGraph& tasks = graph.tasks;
  const int32_t first = tasks.AddTimer(2);
  const int32_t second = tasks.AddTimer(3);
  const int32_t idle = tasks.AddTimer(5);
  graph.ranges.end_of_actions = graph.ranges.end_of_passes = tasks.num_tasks();
  const int32_t step = tasks.AddTimer(1);
  graph.ranges.end_of_steps = graph.ranges.end_of_reductions =
      graph.ranges.end_of_gathers = tasks.num_tasks();
  const int32_t transfer = tasks.AddTimer(4);
  tasks.AddEdge(first, transfer);
  tasks.AddEdge(transfer, second);
  tasks.AddEdge(second, step);
  tasks.AddEdge(idle, step);
  tasks.Finish();
  const auto recording = RunTaskGraph(tasks, {});
  ASSERT_TRUE(recording.ok()) << recording.status();
  const PathSeconds whole =
      CriticalPath(graph, *recording, {.begin_seconds = 0, .end_seconds = 10});
  EXPECT_NEAR(whole.passes, 5, 1e-9);
  EXPECT_NEAR(whole.transfers, 4, 1e-9);
  EXPECT_NEAR(whole.steps, 1, 1e-9);
  EXPECT_EQ(whole.reductions + whole.gathers, 0);
  // Half of the transfer and all tasks after it, divided by two batches.
  const PathSeconds part =
      CriticalPath(graph, *recording,
                   {.begin_seconds = 4, .end_seconds = 10, .num_batches = 2});
  EXPECT_NEAR(part.passes, 1.5, 1e-9);
  EXPECT_NEAR(part.transfers, 1, 1e-9);
  EXPECT_NEAR(part.steps, 0.5, 1e-9);
}

}  // namespace weir::sim::critical_path_test
