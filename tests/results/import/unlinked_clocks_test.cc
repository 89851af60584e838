// SPDX-License-Identifier: Apache-2.0
// Checks runs with workers that no recorded message or collective links.
#include "results/import/unlinked_clocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "results/import/recorded_run.h"
#include "tests/results/import/same_times.h"
#include "tests/results/import/sample_trace.h"

namespace weir::results::unlinked_clocks_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

SampleShape Shape(int num_replicas) {
  SampleShape shape;
  shape.num_replicas = num_replicas;
  shape.num_ranks = 3;
  shape.num_microbatches = 4;
  shape.num_steps = 5;
  return shape;
}

// Returns the passes alone, as torchtitan's ranges, with `ahead` added.
RecordedRun PassesOf(
    const SampleShape& shape,
    const std::function<double(const RecordedOperation&)>& ahead) {
  RecordedRun run;
  run.label = "trace";
  run.format = "sample";
  run.num_replicas = shape.num_replicas;
  run.num_ranks = run.num_stages = shape.num_ranks;
  for (RecordedOperation o : SampleOperations(shape)) {
    if (!IsPass(o.kind)) continue;
    o.start_seconds += ahead(o);
    o.end_seconds += ahead(o);
    run.operations.push_back(o);
  }
  return run;
}

double NotAhead(const RecordedOperation&) { return 0; }

TEST(UnlinkedClocksTest, ReplicasOfPassesAloneAreAligned) {
  const SampleShape shape = Shape(3);
  RecordedRun truth = PassesOf(shape, NotAhead);
  ASSERT_TRUE(CleanRun(&truth).ok());
  EXPECT_THAT(truth.notes, IsEmpty());
  RecordedRun run = PassesOf(shape, [](const RecordedOperation& o) {
    return o.replica == 1 ? 100.0 : o.replica == 2 ? -1e5 : 0.0;
  });
  ASSERT_TRUE(CleanRun(&run).ok());
  EXPECT_THAT(
      run.notes,
      ElementsAre(AllOf(
          HasSubstr("no recorded message or collective links replica 0 to 2 "
                    "other groups: replica 1, replica 2"),
          HasSubstr("in all steps by -100 s (pipeline rank 0 of replica 1"),
          HasSubstr("start a step at the same time"))));
  ExpectSameTimes(run, truth);
  ASSERT_EQ(run.moved_clocks.size(), 6);
  for (const MovedClock& shift : run.moved_clocks) {
    EXPECT_NEAR(shift.least_seconds, shift.replica == 1 ? -100 : 1e5, 1e-9);
    EXPECT_EQ(shift.least_seconds, shift.most_seconds);
  }
}

// Ranks of replica 1 differ, and the replica as a whole as well.
TEST(UnlinkedClocksTest, RanksAreRepairedBeforeTheirReplicaIsAligned) {
  const SampleShape shape = Shape(2);
  RecordedRun truth = PassesOf(shape, NotAhead);
  ASSERT_TRUE(CleanRun(&truth).ok());
  RecordedRun run = PassesOf(shape, [](const RecordedOperation& o) {
    return o.replica == 1 ? 1e5 + 40.0 * o.rank : 0.0;
  });
  ASSERT_TRUE(CleanRun(&run).ok());
  EXPECT_THAT(run.notes, ElementsAre(HasSubstr("clocks of the workers differ"),
                                     HasSubstr("replica 1")));
  ExpectSameTimes(run, truth);
  ASSERT_EQ(run.moved_clocks.size(), 3);
  for (const MovedClock& shift : run.moved_clocks) {
    EXPECT_NEAR(shift.least_seconds, -1e5 - 40.0 * shift.rank, 1e-9);
  }
}

// Less than half of a step could be a replica that starts late.
TEST(UnlinkedClocksTest, StepsThatMostlyOverlapAreUnchanged) {
  const SampleShape shape = Shape(2);
  RecordedRun truth = PassesOf(shape, NotAhead);
  ASSERT_TRUE(CleanRun(&truth).ok());
  const double step = StepsOf(truth)[0].seconds();
  for (const double part : {-0.49, 0.01, 0.49}) {
    RecordedRun run = PassesOf(shape, [&](const RecordedOperation& o) {
      return o.replica == 1 ? part * step : 0.0;
    });
    ASSERT_TRUE(CleanRun(&run).ok());
    EXPECT_THAT(run.notes, IsEmpty());
    EXPECT_THAT(run.moved_clocks, IsEmpty());
    EXPECT_NEAR(StepsOf(run)[0].seconds(), step * (1 + std::abs(part)), 1e-9);
  }
  RecordedRun run = PassesOf(shape, [&](const RecordedOperation& o) {
    return o.replica == 1 ? 0.51 * step : 0.0;
  });
  ASSERT_TRUE(CleanRun(&run).ok());
  ExpectSameTimes(run, truth);
}

// One replica loads data for long in the first step.
TEST(UnlinkedClocksTest, AStepThatIsApartAloneIsUnchanged) {
  RecordedRun run = PassesOf(Shape(2), [](const RecordedOperation& o) {
    return o.replica == 1 && o.step == 10 ? 1000.0 : 0.0;
  });
  ASSERT_TRUE(CleanRun(&run).ok());
  EXPECT_THAT(run.notes, IsEmpty());
  EXPECT_GT(StepsOf(run)[0].seconds(), 1000);
}

TEST(UnlinkedClocksTest, ClocksThatDriftAreAlignedInEachStep) {
  const SampleShape shape = Shape(2);
  RecordedRun truth = PassesOf(shape, NotAhead);
  ASSERT_TRUE(CleanRun(&truth).ok());
  RecordedRun run = PassesOf(shape, [](const RecordedOperation& o) {
    return o.replica == 1 ? 10.0 * o.step : 0.0;
  });
  ASSERT_TRUE(CleanRun(&run).ok());
  EXPECT_THAT(run.notes,
              ElementsAre(HasSubstr("within each step by -500 s to -100 s (")));
  ExpectSameTimes(run, truth);
}

// A constant for three steps would move the other two apart.
TEST(UnlinkedClocksTest, StepsThatOverlapAreNotMovedApart) {
  const SampleShape shape = Shape(3);
  RecordedRun truth = PassesOf(shape, NotAhead);
  ASSERT_TRUE(CleanRun(&truth).ok());
  RecordedRun run = PassesOf(shape, [](const RecordedOperation& o) {
    return o.replica == 0 && o.step <= 30 ? 1000.0 : 0.0;
  });
  ASSERT_TRUE(CleanRun(&run).ok());
  EXPECT_THAT(run.notes, ElementsAre(HasSubstr("within each step")));
  ExpectSameTimes(run, truth);
}

TEST(UnlinkedClocksTest, OnlyTheReplicaThatDiffersIsMoved) {
  const SampleShape shape = Shape(4);
  RecordedRun truth = PassesOf(shape, NotAhead);
  ASSERT_TRUE(CleanRun(&truth).ok());
  for (const int odd : {0, 3}) {
    for (const double ahead : {100.0, -100.0}) {
      RecordedRun run = PassesOf(shape, [&](const RecordedOperation& o) {
        return o.replica == odd ? ahead : 0.0;
      });
      ASSERT_TRUE(CleanRun(&run).ok());
      ExpectSameTimes(run, truth);
      ASSERT_EQ(run.moved_clocks.size(), 3);
      for (const MovedClock& moved : run.moved_clocks) {
        EXPECT_EQ(moved.replica, odd);
      }
    }
  }
}

}  // namespace
}  // namespace weir::results::unlinked_clocks_test
