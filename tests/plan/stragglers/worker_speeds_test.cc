// SPDX-License-Identifier: Apache-2.0
#include "plan/stragglers/worker_speeds.h"

#include <gtest/gtest.h>

#include "results/import/import_trace.h"
#include "tests/results/import/sample_trace.h"

namespace weir::plan::worker_speeds_test {

results::RecordedRun Recorded(const results::SampleShape& shape) {
  const auto run = results::ImportTraceText(
      "a.json", results::SampleJson(results::SampleOperations(shape)));
  EXPECT_TRUE(run.ok()) << run.status();
  return *run;
}

TEST(WorkerSpeedsTest, ASlowWorkerIsFound) {
  results::SampleShape shape;
  shape.num_replicas = 3;
  // Every pass of one worker takes a quarter longer, and a single pass of
  // another one ten times as long.
  shape.factor = [](const results::RecordedOperation& o) {
    if (o.replica == 1 && o.rank == 1) return 1.25;
    return o.replica == 0 && o.rank == 0 && o.step == 10 && o.microbatch == 0
               ? 10.0
               : 1.0;
  };
  const auto slow = SlowWorkersOf(Recorded(shape));
  ASSERT_EQ(slow.size(), 1u);
  EXPECT_EQ(slow[0].replica, 1);
  EXPECT_EQ(slow[0].rank, 1);
  EXPECT_NEAR(slow[0].speed, 0.8, 1e-9);
  EXPECT_EQ(SlowFlag(slow, 3, 1), "gpu4=0.8");
  EXPECT_EQ(SlowFlag(slow, 3, 2), "gpu8=0.8,gpu9=0.8");
}

TEST(WorkerSpeedsTest, LongStagesAreNotSlow) {
  results::SampleShape shape;
  shape.factor = [](const results::RecordedOperation& o) {
    return o.rank == 1 ? 2.0 : 1.0;
  };
  EXPECT_TRUE(SlowWorkersOf(Recorded(shape)).empty());
  shape.num_replicas = 1;
  EXPECT_TRUE(SlowWorkersOf(Recorded(shape)).empty());
  EXPECT_EQ(SlowFlag({}, 2, 1), "");
}

}  // namespace weir::plan::worker_speeds_test
