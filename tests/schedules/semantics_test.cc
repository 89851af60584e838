// SPDX-License-Identifier: Apache-2.0
#include "schedules/semantics.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/schedules/test_schedules.h"

namespace weir::schedules::semantics_test {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

// Narayanan et al., 2021, section 3.1, with microbatches k counted from 1.
TEST(SemanticsTest, TwoBWReadsThePublishedVersionOnEveryStage) {
  for (int p = 1; p <= 9; ++p) {
    for (int m : {p, p + 1, 2 * p + 1, 4 * p}) {
      for (int batches = 1; batches <= 5; ++batches) {
        const Schedule schedule = Generated("2bw", {p, m, 1, batches});
        const Semantics semantics = InterpretSchedule(schedule).value();
        for (int stage = 0; stage < p; ++stage) {
          for (int k = 1; k <= m * batches; ++k) {
            const VersionUse& use = semantics.uses[stage][k - 1];
            const int published = std::max((k - 1) / m - 1, 0);
            ASSERT_EQ(use.forward_version, published);
            ASSERT_EQ(use.backward_version, published);
            ASSERT_EQ(use.update, (k - 1) / m);
          }
        }
      }
    }
  }
}

TEST(SemanticsTest, TwoBWHoldsExactlyTwoVersionsAfterItsFirstUpdate) {
  for (int p = 1; p <= 9; ++p) {
    for (int m : {p, p + 1, 3 * p}) {
      const Schedule schedule = Generated("2bw", {p, m, 1, 4});
      const Semantics semantics = InterpretSchedule(schedule).value();
      for (int rank = 0; rank < p; ++rank) {
        ASSERT_EQ(semantics.update_positions[rank].size(), 4u);
        const int first = semantics.update_positions[rank][0];
        const std::vector<int32_t>& live = semantics.live_versions[rank];
        for (int i = 0; i < std::ssize(live); ++i) {
          ASSERT_EQ(live[i], i <= first ? 1 : 2) << "rank " << rank << " " << i;
        }
      }
      EXPECT_THAT(semantics.max_live_versions, Each(2));
      EXPECT_THAT(semantics.max_staleness, Each(1));
      EXPECT_EQ(Verdict(schedule, semantics),
                "delay 1, constant: w(t+1) = w(t) - eta grad f(w(t-1))");
    }
  }
}

TEST(SemanticsTest, TwoBWUpdatesAfterTheLastBackwardOfABatch) {
  const Schedule schedule = Generated("2bw", {4, 6, 1, 3});
  const Semantics semantics = InterpretSchedule(schedule).value();
  for (int rank = 0; rank < 4; ++rank) {
    std::vector<Action> last;
    for (int position : semantics.update_positions[rank]) {
      last.push_back(schedule.rank_actions[rank][position]);
    }
    EXPECT_THAT(last, ElementsAre(Action{Op::kBackward, rank, 5},
                                  Action{Op::kBackward, rank, 11},
                                  Action{Op::kBackward, rank, 17}));
  }
}

TEST(SemanticsTest, PipeDreamHoldsAVersionPerMicrobatchInFlight) {
  for (int p = 1; p <= 9; ++p) {
    const int total = 5 * p;
    const Schedule schedule = Generated("pipedream", {p, p, 1, 5});
    const Semantics semantics = InterpretSchedule(schedule).value();
    for (int stage = 0; stage < p; ++stage) {
      const int warmup = p - 1 - stage;
      EXPECT_EQ(semantics.max_live_versions[stage], p - stage);
      EXPECT_EQ(semantics.max_staleness[stage], warmup);
      // From the first backward of a steady forward to the last forward.
      for (int i = 3 * warmup + 1; i <= 2 * total - warmup - 2; ++i) {
        ASSERT_EQ(semantics.live_versions[stage][i], p - stage);
      }
      for (int k = 0; k < total; ++k) {
        const VersionUse& use = semantics.uses[stage][k];
        ASSERT_EQ(use.forward_version, std::max(k - warmup, 0));
        ASSERT_EQ(use.backward_version, use.forward_version);
        ASSERT_EQ(use.staleness(), std::min(k, warmup));
      }
    }
  }
}

TEST(SemanticsTest, PipeDreamsVerdictIsTheDistanceToTheLastStage) {
  const Schedule schedule = Generated("pipedream", {4, 8, 1, 2});
  EXPECT_EQ(Verdict(schedule, InterpretSchedule(schedule).value()),
            "stage-dependent delay p-1-s: w(t+1) = w(t) - eta grad f(w_0(t-3), "
            "..., w_3(t))");
}

TEST(SemanticsTest, VerdictAdmitsWhenTooFewMicrobatchesShowNoDelay) {
  for (absl::string_view name : {"2bw", "pipedream"}) {
    const Schedule schedule = Generated(name, {1, 1});
    const Semantics semantics = InterpretSchedule(schedule).value();
    EXPECT_EQ(
        Verdict(schedule, semantics),
        name == "2bw"
            ? "no delay within 1 microbatches, which are too few to detect one"
            : "equal to minibatch SGD");
  }
}

// PipeMare (Yang et al., 2021) keeps no stash: a backward reads the current
// version.
TEST(SemanticsTest, WithoutStashABackwardReadsTheNewestAndOneVersionLives) {
  Schedule schedule = Generated("pipedream", {4, 16});
  schedule.weights.backward = WeightPolicy::BackwardRead::kLatest;
  const Semantics semantics = InterpretSchedule(schedule).value();
  EXPECT_THAT(semantics.max_live_versions, Each(1));
  for (int stage = 0; stage < 4; ++stage) {
    for (int k = 0; k < 16; ++k) {
      EXPECT_EQ(semantics.uses[stage][k].backward_version, k);
    }
  }
  EXPECT_THAT(Verdict(schedule, semantics),
              HasSubstr("; F and B disagree by up to 3 updates"));
}

TEST(SemanticsTest, UpdateOfASplitBackwardWaitsForItsWeightGradient) {
  Schedule schedule = FromText("0F0,0I0,0F1,0W0,0I1,0W1");
  schedule.flush = false;
  schedule.weights.microbatches_per_update = 1;
  const Semantics semantics = InterpretSchedule(schedule).value();
  EXPECT_THAT(semantics.update_positions[0], ElementsAre(3, 5));
  EXPECT_EQ(semantics.uses[0][1].forward_version, 0);
  EXPECT_EQ(semantics.uses[0][1].staleness(), 1);
  // 0I1 is the last reader of version 0; while 0W1 runs, only the newest is
  // live.
  EXPECT_THAT(semantics.live_versions[0], ElementsAre(1, 1, 1, 1, 2, 1));
}

TEST(SemanticsTest, ALaterReaderKeepsAVersionThatNobodyReadsNow) {
  // While 0F2 and 0B2 read version 0, version 1 is kept for 0F3. Version 2 is
  // never read and is dropped once version 3 exists.
  Schedule schedule = FromText("0F0,0B0,0F1,0B1,0F2,0B2,0F3,0B3");
  schedule.flush = false;
  schedule.weights = {.microbatches_per_update = 1,
                      .forward = WeightPolicy::ForwardRead::kDelayed,
                      .delay_updates = 2};
  const Semantics semantics = InterpretSchedule(schedule).value();
  EXPECT_THAT(semantics.live_versions[0], ElementsAre(1, 1, 2, 2, 3, 3, 2, 2));
  EXPECT_EQ(Verdict(schedule, semantics),
            "delay 2, constant: w(t+1) = w(t) - eta grad f(w(t-2))");
}

TEST(SemanticsTest, UnfinishedLastGroupIsNeverApplied) {
  Schedule schedule = Generated("pipedream", {1, 5});
  schedule.weights.microbatches_per_update = 2;
  const Semantics semantics = InterpretSchedule(schedule).value();
  EXPECT_THAT(semantics.update_positions[0], ElementsAre(3, 7));
  EXPECT_EQ(semantics.uses[0][4].update, 2);
}

TEST(SemanticsTest, ForwardOfAVersionThatDoesNotExistYetIsAnError) {
  Schedule schedule = FromText("0F0,0F1,0B0,0B1");
  schedule.weights = {.microbatches_per_update = 1,
                      .forward = WeightPolicy::ForwardRead::kDelayed,
                      .delay_updates = 0};
  const absl::Status status = InterpretSchedule(schedule).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(),
            "test: rank 0 position 1: 0F1 reads weight version 1 of stage 0, "
            "but update 0, which makes version 1, has not happened yet");
}

TEST(SemanticsTest, UpdatesMustHappenInOrder) {
  Schedule schedule = FromText("0F0,0F1,0B1,0B0");
  schedule.weights.microbatches_per_update = 1;
  const absl::Status status = InterpretSchedule(schedule).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("0B1 completes update 1 of stage 0 "
                                          "before update 0"));
}

TEST(SemanticsTest, StagesOfOneRankHaveVersionsOfTheirOwn) {
  Schedule schedule = FromText("0F0,1F0,1B0,0B0,0F1,1F1,1B1,0B1");
  schedule.flush = false;
  schedule.weights.microbatches_per_update = 1;
  const Semantics semantics = InterpretSchedule(schedule).value();
  EXPECT_THAT(semantics.update_positions[0], ElementsAre(2, 3, 6, 7));
  EXPECT_EQ(semantics.uses[0][1].forward_version, 1);
  EXPECT_EQ(semantics.uses[1][1].forward_version, 1);
  EXPECT_THAT(semantics.max_live_versions, ElementsAre(1, 1));
}

// Returns two replicas of stage 0 on ranks 0 and 1, and stage 1 on rank 2.
Schedule TwoReplicas() {
  Schedule schedule = Generated("pipedream:replicas=2-1", {3, 8});
  schedule.weights.microbatches_per_update = 1;
  return schedule;
}

TEST(SemanticsTest, AReplicaWithoutAGradientForAnUpdateIsAnError) {
  Schedule schedule = TwoReplicas();
  schedule.weights.times_replicas = false;
  const absl::Status status = InterpretSchedule(schedule).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(),
            "pipedream:replicas=2-1: rank 0 has no gradient of stage 0 for "
            "update 1, expected at least one from every replica of a stage");
}

TEST(SemanticsTest, VerticalSyncOfStagesThatUpdateApartIsAnError) {
  Schedule schedule = TwoReplicas();
  schedule.weights.forward = WeightPolicy::ForwardRead::kFirstStage;
  EXPECT_EQ(InterpretSchedule(schedule).status().message(),
            "pipedream:replicas=2-1: vertical sync: stage 1 updates after 1 "
            "microbatches, "
            "expected 2 as in stage 0");
}

TEST(SemanticsTest, ABackwardOverTwoUpdatesIsAnError) {
  Schedule schedule = Generated("timeprest", {1, 4, 1, 2});
  schedule.weights.microbatches_per_update = 2;
  EXPECT_EQ(InterpretSchedule(schedule).status().message(),
            "timeprest: rank 0 position 4: 0B0-3 computes gradients for the "
            "updates 0 to 1 of stage 0 together, expected only one update");
}

// 0B0-1 is the last reader of versions 0 and 1, so both are dropped after it.
TEST(SemanticsTest, ASpanReadsTheVersionOfEachOfItsMicrobatches) {
  Schedule schedule = FromText("0F0,0F1,0B0-1,0F2,0F3,0B2-3");
  schedule.flush = false;
  schedule.weights.microbatches_per_update = 2;
  schedule.weights.forward = WeightPolicy::ForwardRead::kLatest;
  Semantics semantics = InterpretSchedule(schedule).value();
  EXPECT_THAT(semantics.update_positions[0], ElementsAre(2, 5));
  EXPECT_EQ(semantics.uses[0][3].forward_version, 1);
  EXPECT_EQ(semantics.uses[0][3].backward_version, 1);

  schedule = FromText("0F0,0F1,0F2,0B0-1,0F3,0B2-3");
  schedule.flush = false;
  schedule.weights.microbatches_per_update = 2;
  semantics = InterpretSchedule(schedule).value();
  EXPECT_EQ(semantics.uses[0][2].backward_version, 0);
  EXPECT_EQ(semantics.uses[0][3].backward_version, 1);
  EXPECT_THAT(semantics.live_versions[0], ElementsAre(1, 1, 1, 1, 2, 2));
}

// Both actions of a pair start together, so the forward cannot read the update
// that the overlapped backward completes, whichever is listed first.
TEST(SemanticsTest, AForwardReadsNothingOfTheBackwardThatItOverlaps) {
  for (const bool backward_first : {false, true}) {
    Schedule schedule =
        FromText(backward_first ? "0F0,0B0,0F1,0B1" : "0F0,0F1,0B0,0B1");
    schedule.flush = false;
    schedule.weights.microbatches_per_update = 1;
    schedule.rank_actions[0][1].overlaps_next = true;
    const Semantics semantics = InterpretSchedule(schedule).value();
    EXPECT_EQ(semantics.uses[0][1].forward_version, 0);
    EXPECT_THAT(semantics.live_versions[0], ElementsAre(1, 1, 1, 2));
    EXPECT_THAT(semantics.update_positions[0],
                ElementsAre(backward_first ? 1 : 2, 3));
  }
}

TEST(SemanticsTest, OffloadsReadNoWeights) {
  Schedule plain = FromText("0F0,0F1,0B0,0B1");
  Schedule schedule = FromText("0F0,0O0,0F1,0R0,0B0,0B1");
  for (Schedule* either : {&plain, &schedule}) {
    either->flush = false;
    either->weights.microbatches_per_update = 1;
  }
  const Semantics semantics = InterpretSchedule(schedule).value();
  EXPECT_EQ(semantics.uses[0][1].staleness(), 1);
  EXPECT_THAT(semantics.update_positions[0], ElementsAre(4, 5));
  EXPECT_THAT(semantics.live_versions[0], ElementsAre(1, 1, 1, 1, 1, 2));
  EXPECT_EQ(Verdict(schedule, semantics),
            Verdict(plain, InterpretSchedule(plain).value()));
}

}  // namespace weir::schedules::semantics_test
