// SPDX-License-Identifier: Apache-2.0
#include "schedules/validate.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/schedules/test_schedules.h"

namespace weir::schedules::validate_test {

using testing::AllOf;
using testing::HasSubstr;

std::string ErrorOf(const Schedule& schedule) {
  return std::string(ValidateSchedule(schedule).message());
}

TEST(ValidateTest, SplitAndFusedBackwardsMayMix) {
  const Schedule schedule =
      FromText("0F0,0F1,0B0,0I1,0W1\n1F0,1I0,1W0,1F1,1B1");
  EXPECT_TRUE(ValidateSchedule(schedule).ok()) << ValidateSchedule(schedule);
}

TEST(ValidateTest, NeighbouringStagesMayShareARank) {
  const Schedule schedule = FromText("0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0\n");
  EXPECT_TRUE(ValidateSchedule(schedule).ok()) << ValidateSchedule(schedule);
}

TEST(ValidateTest, AllProblemsComeTogether) {
  Schedule schedule = FromText("0F0,0B0,0F1,0B1\n1F0,1B0,1F1,1B1\n");
  schedule.rank_actions[0] = {{Op::kBackward, 0, 0},
                              {Op::kForward, 0, 0},
                              {Op::kForward, 1, 1},
                              {Op::kForward, 0, 7},
                              {Op::kForward, 0, 0}};
  schedule.rank_actions[1].pop_back();
  EXPECT_THAT(
      ErrorOf(schedule),
      AllOf(HasSubstr("rank 0 position 0: 0B0 comes before its forward"),
            HasSubstr("rank 0 position 2: 1F1 is of stage 1, which rank 1 "
                      "holds"),
            HasSubstr("rank 0 position 3: 0F7 is outside the 2 stages x 2 "
                      "microbatches"),
            HasSubstr("rank 0 position 4: 0F0 appears a second time"),
            HasSubstr("stage 0 microbatch 1 has no F and B"),
            HasSubstr("stage 1 microbatch 1 has no B")));
}

TEST(ValidateTest, HalvesOfABackwardAreAskedForByName) {
  EXPECT_THAT(ErrorOf(FromText("0F0,0I0")),
              HasSubstr("stage 0 microbatch 0 has no W"));
  EXPECT_THAT(ErrorOf(FromText("0F0,0W0,0I0")),
              HasSubstr("0W0 comes before its input gradient (I)"));
  EXPECT_THAT(
      ErrorOf(FromText("0F0,0B0,0I0,0W0")),
      HasSubstr("0I0 repeats a backward that a B or I has already computed"));
  EXPECT_THAT(
      ErrorOf(FromText("0F0,0I0,0B0,0W0")),
      HasSubstr("0B0 repeats a backward that a B or I has already computed"));
}

TEST(ValidateTest, ActivationsAreOffloadedBeforeTheirBackward) {
  const auto error = [](const std::vector<Op>& ops) {
    Schedule schedule = FromText("0F0,0B0");
    schedule.rank_actions[0].clear();
    for (const Op op : ops) schedule.rank_actions[0].push_back({op, 0, 0});
    return ErrorOf(schedule);
  };
  EXPECT_EQ(error({Op::kForward, Op::kOffload, Op::kReload, Op::kBackward}),
            "");
  EXPECT_THAT(
      error({Op::kForward, Op::kBackward, Op::kOffload}),
      HasSubstr(
          "0O0 offloads activations that its backward has already freed"));
  EXPECT_THAT(
      error({Op::kForward, Op::kBackwardInput, Op::kOffload,
             Op::kBackwardWeight}),
      HasSubstr(
          "0O0 offloads activations that its backward has already freed"));
  EXPECT_THAT(
      error({Op::kForward, Op::kOffload, Op::kBackward}),
      HasSubstr(
          "0B0 needs activations that were offloaded and not yet reloaded"));
  EXPECT_THAT(error({Op::kForward, Op::kReload, Op::kBackward}),
              HasSubstr("0R0 comes before its offload (O)"));
}

TEST(ValidateTest, NoForwardOverlapsWithItsOwnBackward) {
  EXPECT_THAT(ErrorOf(FromText("(0F0;0B0)OVERLAP_F_B")),
              HasSubstr("0F0 overlaps its own backward"));
  EXPECT_THAT(
      ErrorOf(FromText("0F0,0F1,0B0,0B1\n1F0,1B0,(1F1;1I1)OVERLAP_F_B,1W1")),
      HasSubstr("rank 1 position 2: 1F1 overlaps its own backward"));
  EXPECT_EQ(ErrorOf(FromText("0F0,(0F1;0B0)OVERLAP_F_B,0B1")), "");
}

TEST(ValidateTest, ManyProblemsAreCut) {
  Schedule schedule = Generated("1f1b", {1, 1000});
  schedule.rank_actions[0].clear();
  EXPECT_THAT(ErrorOf(schedule), HasSubstr("and 980 more"));
}

TEST(ValidateTest, DeadlockNamesTheShortestCycle) {
  // Ranks 0 and 1 wait for each other; rank 2 waits only for them.
  const Schedule schedule = FromText(
      "0F0,0B0,0F1,0B1\n"
      "1F0,1F1,1B0,1B1\n"
      "2F0,2B0,2F1,2B1\n");
  const absl::Status status = ValidateSchedule(schedule);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(),
            "deadlock: rank 0 waits at position 1 (0B0) for 1B0 at position 2 "
            "of rank 1; rank 1 waits at position 1 (1F1) for 0F1 at position 2 "
            "of rank 0");
}

TEST(ValidateTest, RankMayWaitForItself) {
  EXPECT_EQ(ErrorOf(FromText("0F0,1F0,0B0,1B0")),
            "deadlock: rank 0 waits at position 2 (0B0) for 1B0 at position 3 "
            "of rank 0");
}

TEST(ValidateTest, DeadlockNamesTheInputGradientOfASplitBackward) {
  EXPECT_THAT(ErrorOf(FromText("0F0,0B0,0F1,0B1\n1F0,1F1,1I0,1W0,1I1,1W1")),
              HasSubstr("rank 0 waits at position 1 (0B0) for 1I0 at position "
                        "2 of rank 1"));
}

TEST(ValidateTest, LongCycleIsCut) {
  // Rank 0 starts with its second chunk, which waits for all other ranks.
  constexpr int kRanks = 40;
  Schedule schedule = Generated("interleaved", {kRanks, kRanks, 2});
  auto& actions = schedule.rank_actions[0];
  std::swap(actions[0], actions[kRanks]);
  ASSERT_EQ(ToString(actions[0]), "40F0");
  EXPECT_THAT(
      ErrorOf(schedule),
      AllOf(HasSubstr("rank 0 waits at position 0 (40F0) for 39F0 at position "
                      "0 of rank 39; rank 39 waits at position 0 (39F0)"),
            HasSubstr("and 24 more")));
}

TEST(ValidateTest, ShapeMustMatchTheTables) {
  Schedule schedule = Generated("1f1b", {2, 2});
  schedule.routes[0].push_back(0);
  schedule.rank_actions.emplace_back();
  EXPECT_THAT(ErrorOf(schedule),
              AllOf(HasSubstr("routes[0] has 3 stages, expected num_stages, "
                              "2"),
                    HasSubstr("rank_actions has 3 ranks, expected num_ranks, "
                              "2")));
}

TEST(ValidateTest, StagesAreOnRanksAndRanksHaveStages) {
  Schedule schedule = Generated("1f1b", {3, 1});
  schedule.routes[0] = {0, -1, 0};
  EXPECT_THAT(ErrorOf(schedule),
              AllOf(HasSubstr("routes[0][1] is -1, expected 0 to 2"),
                    HasSubstr("rank 1 holds no stage"),
                    HasSubstr("rank 2 holds no stage")));
}

TEST(ValidateTest, AbsurdCountsAreRefusedBeforeMemoryIsTaken) {
  constexpr int kHuge = std::numeric_limits<int>::max();
  for (int Schedule::*count :
       {&Schedule::num_ranks, &Schedule::num_stages,
        &Schedule::num_microbatches, &Schedule::num_batches}) {
    for (int value : {kHuge, 399'999'999, 0, -1, -kHuge}) {
      Schedule schedule = Generated("pipedream", {2, 2});
      schedule.*count = value;
      EXPECT_EQ(ValidateSchedule(schedule).code(),
                absl::StatusCode::kInvalidArgument)
          << value;
    }
  }
}

TEST(ValidateTest, FlushSeparatesBatches) {
  Schedule schedule = Generated("pipedream", {2, 2, 1, 2});
  schedule.flush = true;
  EXPECT_THAT(ErrorOf(schedule), HasSubstr("expected no earlier batch than 1"));
}

TEST(ValidateTest, WeightPolicyIsInRange) {
  Schedule schedule = Generated("2bw", {2, 2});
  schedule.weights.microbatches_per_update = 0;
  schedule.weights.delay_updates = -1;
  EXPECT_THAT(ErrorOf(schedule),
              AllOf(HasSubstr("weights.microbatches_per_update is 0"),
                    HasSubstr("weights.delay_updates is -1")));
}

}  // namespace weir::schedules::validate_test
