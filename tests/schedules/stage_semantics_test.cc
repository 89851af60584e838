// SPDX-License-Identifier: Apache-2.0
// Tests the summary of a stage from hand-written weight versions.
#include "schedules/stage_semantics.h"

#include <gtest/gtest.h>

#include <vector>

namespace weir::schedules::stage_semantics_test {

struct Read {
  int forward, backward;
};

// Returns the summary of a single stage on one rank. `reads` holds the versions
// that the passes of each microbatch read.
StageSemantics Summary(int microbatches_per_update,
                       const std::vector<Read>& reads,
                       const std::vector<double>& forward_distance = {}) {
  Schedule schedule;
  schedule.num_ranks = schedule.num_stages = 1;
  schedule.num_microbatches = static_cast<int>(reads.size());
  schedule.flush = false;
  schedule.routes = {{0}};
  schedule.weights.microbatches_per_update = microbatches_per_update;
  schedule.weights.forward_distance = forward_distance;
  Semantics semantics;
  semantics.uses.resize(1);
  semantics.max_live_versions = {3};
  semantics.max_staleness = {2};
  for (const Read& read : reads) {
    const auto k = static_cast<int>(semantics.uses[0].size());
    semantics.uses[0].push_back(
        {read.forward, read.backward, k / microbatches_per_update});
  }
  return SummarizeStages(schedule, semantics)[0];
}

// Means cover only updates in which every microbatch reads weights that an
// earlier update computed.
TEST(StageSemanticsTest, MeansLeaveOutTheStart) {
  // Updates 0 to 4. Update 2 is the first whose forward reads version 1.
  const StageSemantics stage =
      Summary(1, {{0, 0}, {0, 1}, {1, 2}, {2, 2}, {2, 4}});
  EXPECT_FALSE(stage.is_start_only);
  EXPECT_DOUBLE_EQ(stage.mean_staleness, (1 + 1 + 2) / 3.0);
  EXPECT_DOUBLE_EQ(stage.mean_disagreement, (1 + 0 + 2) / 3.0);
  EXPECT_EQ(stage.max_disagreement, 2);
  EXPECT_EQ(stage.max_live_versions, 3);
  EXPECT_EQ(stage.max_staleness, 2);
}

TEST(StageSemanticsTest, MeansAreOfWholeUpdates) {
  // Updates of two microbatches. Update 1 begins with version 0, and the last
  // update is incomplete.
  const StageSemantics stage = Summary(
      2,
      {{0, 0}, {0, 0}, {0, 0}, {1, 1}, {1, 2}, {2, 2}, {2, 2}, {3, 3}, {3, 3}});
  EXPECT_FALSE(stage.is_start_only);
  // Staleness of updates 2 and 3: 2 - 1, 2 - 2, 3 - 2, 3 - 3.
  EXPECT_DOUBLE_EQ(stage.mean_staleness, 2 / 4.0);
  EXPECT_DOUBLE_EQ(stage.mean_disagreement, 1 / 4.0);
}

// If every forward reads the initial weights, the means are those of the last
// complete update.
TEST(StageSemanticsTest, WhereThereIsOnlyTheStartItIsSaid) {
  const StageSemantics stage =
      Summary(2, {{0, 0}, {0, 0}, {0, 1}, {0, 1}, {0, 0}});
  EXPECT_TRUE(stage.is_start_only);
  EXPECT_DOUBLE_EQ(stage.mean_staleness, 1);
  EXPECT_DOUBLE_EQ(stage.mean_disagreement, 1);
}

// A forward that predicts one version ahead disagrees with the backward by one
// version less.
TEST(StageSemanticsTest, PredictionsMoveWhatPassesComputeWith) {
  const StageSemantics stage =
      Summary(1, {{0, 1}, {1, 2}, {2, 3}, {3, 5}}, {1.0});
  EXPECT_DOUBLE_EQ(stage.mean_disagreement, (1 + 1 + 2) / 3.0);
  EXPECT_DOUBLE_EQ(stage.mean_predicted_disagreement, (0 + 0 + 1) / 3.0);
  EXPECT_DOUBLE_EQ(stage.max_predicted_disagreement, 1);
  EXPECT_EQ(stage.forward_distance, 1);
  EXPECT_EQ(stage.backward_distance, 0);
}

}  // namespace weir::schedules::stage_semantics_test
