// SPDX-License-Identifier: Apache-2.0
// Checks passes of one worker that cannot be as their times say.
#include "results/import/pass_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "results/import/recorded_run.h"
#include "tests/results/import/sample_trace.h"

namespace weir::results::pass_times_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Pass {
  RecordedKind kind = RecordedKind::kForward;
  int microbatch = 0;
  double start = 0, end = 0;
};

// A step of one worker.
RecordedRun RunOf(const std::vector<Pass>& passes) {
  RecordedRun run;
  run.label = "trace";
  run.num_replicas = run.num_ranks = run.num_stages = 1;
  for (const Pass& pass : passes) {
    RecordedOperation o;
    o.stage = 0;
    o.kind = pass.kind;
    o.microbatch = pass.microbatch;
    o.start_seconds = pass.start;
    o.end_seconds = pass.end;
    run.operations.push_back(o);
  }
  return run;
}

constexpr RecordedKind kForward = RecordedKind::kForward;
constexpr RecordedKind kBackward = RecordedKind::kBackward;

TEST(PassTimesTest, PassesInARowAreFine) {
  RecordedRun run = RunOf({{kForward, 0, 0, 1},
                           {kForward, 1, 1, 2},
                           {kBackward, 0, 1.9998, 4},
                           {kBackward, 1, 4, 6}});
  ASSERT_TRUE(CleanRun(&run).ok());
  EXPECT_THAT(run.notes, IsEmpty());
}

TEST(PassTimesTest, ABackwardBeforeItsForwardIsRefused) {
  RecordedRun run = RunOf({{kForward, 0, 5, 6},
                           {kForward, 1, 6, 7},
                           {kBackward, 0, 2, 4},
                           {kBackward, 1, 8, 10}});
  EXPECT_THAT(
      std::string(CleanRun(&run).message()),
      AllOf(HasSubstr("trace: pipeline rank 0, step 0: the backward of "
                      "microbatch 0 in stage 0 starts at 0 s, but its forward "
                      "lasts from 3 s to 4 s (1 of 4 passes"),
            HasSubstr("expected a forward before its backward")));
  // Also if both start at once.
  run = RunOf({{kForward, 0, 0, 1}, {kBackward, 0, 0, 2}});
  EXPECT_FALSE(CleanRun(&run).ok());
  run.has_early_passes = true;
  ASSERT_TRUE(CleanRun(&run).ok());
  EXPECT_THAT(run.notes, ElementsAre(HasSubstr("the backward of microbatch 0"),
                                     HasSubstr("1 of 2 passes overlap")));
}

TEST(PassTimesTest, OverlapsAreNoted) {
  // 1 s of the backward of microbatch 0 with forward 1, and 0.25 s of both
  // backwards.
  RecordedRun run = RunOf({{kForward, 0, 0, 2},
                           {kForward, 1, 2, 4},
                           {kBackward, 0, 3, 6},
                           {kBackward, 1, 5.75, 8}});
  ASSERT_TRUE(CleanRun(&run).ok());
  EXPECT_THAT(
      run.notes,
      ElementsAre(HasSubstr(
          "2 of 4 passes overlap an earlier one of the same worker, by up to "
          "1 s (the forward of microbatch 1 and the backward of microbatch 0 "
          "on pipeline rank 0, in step 0)")));
  EXPECT_DOUBLE_EQ(StepsOf(run)[0].seconds(), 8);
}

TEST(PassTimesTest, AShortPassWithinALongOneOverlapsByItsOwnTime) {
  RecordedRun run = RunOf({{kForward, 0, 0, 10},
                           {kForward, 1, 3, 3.5},
                           {kBackward, 0, 10, 12},
                           {kBackward, 1, 12, 14}});
  ASSERT_TRUE(CleanRun(&run).ok());
  EXPECT_THAT(run.notes, ElementsAre(HasSubstr("by up to 500 ms")));
}

TEST(PassTimesTest, WorkersAndStepsAreIndependent) {
  // All workers of the sample run at the same times.
  SampleShape shape;
  shape.num_replicas = 4;
  RecordedRun run;
  run.num_replicas = 4;
  run.num_ranks = run.num_stages = shape.num_ranks;
  run.operations = SampleOperations(shape);
  ASSERT_TRUE(CleanRun(&run).ok());
  EXPECT_THAT(run.notes, IsEmpty());
}

TEST(PassTimesTest, PassesWithoutDurationAreRefused) {
  RecordedRun run = RunOf({{kForward, 0, 0, 0}, {kBackward, 0, 1, 1}});
  EXPECT_EQ(CleanRun(&run).message(),
            "trace: all of 2 passes last 0 s, expected passes with their "
            "durations");
}

}  // namespace
}  // namespace weir::results::pass_times_test
