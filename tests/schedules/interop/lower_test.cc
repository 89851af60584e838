// SPDX-License-Identifier: Apache-2.0
// Compares lowering with PyTorch's: weir's generators and lowering reproduce
// the rows of its test artifacts (test/distributed/pipelining/artifacts).
#include "schedules/interop/lower.h"

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedules/comm/deadlock.h"
#include "schedules/comm/transfers.h"
#include "schedules/validate.h"
#include "tests/schedules/test_schedules.h"

namespace weir::schedules::lower_test {

using testing::HasSubstr;

std::string Lowered(const Schedule& schedule, const LoweringOptions& options) {
  absl::StatusOr<CommProgram> program = LowerSchedule(schedule, options);
  EXPECT_TRUE(program.ok()) << program.status();
  return program.ok() ? PrintCsv(*program) : "";
}

// Removes idle steps, which lowering drops.
std::string WithoutIdle(absl::string_view text) {
  return PrintCsv(FromText(text));
}

// zb1p_2rank_2stagep_compute.csv, 2 ranks x 2 stages x 8 microbatches.
constexpr absl::string_view kZeroBubblePasses =
    "0F0,0F1,2F0,,2F1,2I0,2W0,0F2,2I1,2W1,0F3,0I0,0W0,2F2,0I1,0W1,2F3,2I2,2W2,"
    "0F4,2I3,2W3,0F5,0I2,0W2,2F4,0I3,0W3,2F5,2I4,2W4,0F6,2I5,2W5,0F7,0I4,0W4,"
    "2F6,0I5,0W5,2F7,2I6,2W6,2I7,2W7,0I6,0W6,0I7,0W7\n"
    ",1F0,1F1,3F0,3I0,3F1,3I1,3W0,1F2,1I0,3W1,1F3,1I1,1W0,3F2,3I2,1W1,3F3,3I3,"
    "3W2,1F4,1I2,3W3,1F5,1I3,1W2,3F4,3I4,1W3,3F5,3I5,3W4,1F6,1I4,3W5,1F7,1I5,"
    "1W4,3F6,3I6,1W5,3F7,3I7,3W6,1I6,3W7,1I7,1W6,1W7\n";

// zb1p_2rank_2stagep_comms.csv: the same with adjacent I and W merged and with
// transfers, without sharding.
constexpr absl::string_view kZeroBubbleProgram =
    "0F0,0SEND_F0,2RECV_F0,0F1,0SEND_F1,2RECV_F1,2F0,2SEND_F0,2F1,2SEND_F1,"
    "2RECV_B0,2B0,2SEND_B0,0F2,0SEND_F2,2RECV_B1,2B1,2SEND_B1,0F3,0SEND_F3,"
    "2RECV_F2,0RECV_B0,0B0,2F2,2SEND_F2,2RECV_F3,0RECV_B1,0B1,2F3,2SEND_F3,"
    "2RECV_B2,2B2,2SEND_B2,0F4,0SEND_F4,2RECV_B3,2B3,2SEND_B3,0F5,0SEND_F5,"
    "2RECV_F4,0RECV_B2,0B2,2F4,2SEND_F4,2RECV_F5,0RECV_B3,0B3,2F5,2SEND_F5,"
    "2RECV_B4,2B4,2SEND_B4,0F6,0SEND_F6,2RECV_B5,2B5,2SEND_B5,0F7,0SEND_F7,"
    "2RECV_F6,0RECV_B4,0B4,2F6,2SEND_F6,2RECV_F7,0RECV_B5,0B5,2F7,2SEND_F7,"
    "2RECV_B6,2B6,2SEND_B6,2RECV_B7,2B7,2SEND_B7,0RECV_B6,0B6,0RECV_B7,0B7\n"
    "1RECV_F0,1F0,1SEND_F0,1RECV_F1,1F1,1SEND_F1,3RECV_F0,3F0,3RECV_F1,3I0,"
    "3SEND_B0,1RECV_B0,3F1,1RECV_F2,3I1,3SEND_B1,1RECV_B1,3W0,1RECV_F3,1F2,"
    "1SEND_F2,1I0,1SEND_B0,3W1,3RECV_F2,1F3,1SEND_F3,1I1,1SEND_B1,1W0,3RECV_F3,"
    "3F2,3I2,3SEND_B2,1RECV_B2,1W1,1RECV_F4,3F3,3I3,3SEND_B3,1RECV_B3,3W2,"
    "1RECV_F5,1F4,1SEND_F4,1I2,1SEND_B2,3W3,3RECV_F4,1F5,1SEND_F5,1I3,1SEND_B3,"
    "1W2,3RECV_F5,3F4,3I4,3SEND_B4,1RECV_B4,1W3,1RECV_F6,3F5,3I5,3SEND_B5,"
    "1RECV_B5,3W4,1RECV_F7,1F6,1SEND_F6,1I4,1SEND_B4,3W5,3RECV_F6,1F7,1SEND_F7,"
    "1I5,1SEND_B5,1W4,3RECV_F7,3F6,3I6,3SEND_B6,1RECV_B6,1W5,3F7,3I7,3SEND_B7,"
    "1RECV_B7,3W6,1I6,1SEND_B6,3W7,1I7,1SEND_B7,1W6,1W7\n";

TEST(LowerTest, ZeroBubblePassesAreThoseOfPyTorchsArtifact) {
  EXPECT_EQ(PrintCsv(Generated("InterleavedZeroBubble", {2, 8, 2})),
            WithoutIdle(kZeroBubblePasses));
}

TEST(LowerTest, ZeroBubbleProgramIsThatOfPyTorchsArtifact) {
  const LoweringOptions options = {.max_active_stages = 0,
                                   .reduce_gradients = false,
                                   .merge_backward = true};
  EXPECT_EQ(Lowered(Generated("InterleavedZeroBubble", {2, 8, 2}), options),
            kZeroBubbleProgram);
}

// dualpipev_4rank_10mb.csv
TEST(LowerTest, DualPipeVPassesAreThoseOfPyTorchsArtifact) {
  constexpr absl::string_view kRows =
      "0F0,0F1,0F2,0F3,0F4,0F5,0F6,7F0,7I0,7W0,7F1,7I1,7W1,7F2,7I2,7W2,7F3,"
      "(0F7;7B3)OVERLAP_F_B,(7F4;0B0)OVERLAP_F_B,(0F8;7B4)OVERLAP_F_B,"
      "(7F5;0B1)OVERLAP_F_B,(0F9;7B5)OVERLAP_F_B,(7F6;0B2)OVERLAP_F_B,7B6,"
      "(7F7;0B3)OVERLAP_F_B,7B7,(7F8;0B4)OVERLAP_F_B,7B8,(7F9;0B5)OVERLAP_F_B,"
      "7B9,0I6,0W6,0I7,0W7,0I8,0W8,0I9,0W9\n"
      "1F0,1F1,1F2,1F3,1F4,6F0,1F5,6F1,6I0,6W0,6F2,6I1,6W1,6F3,"
      "(1F6;6B2)OVERLAP_F_B,(6F4;1B0)OVERLAP_F_B,(1F7;6B3)OVERLAP_F_B,"
      "(6F5;1B1)OVERLAP_F_B,(1F8;6B4)OVERLAP_F_B,(6F6;1B2)OVERLAP_F_B,"
      "(1F9;6B5)OVERLAP_F_B,(6F7;1B3)OVERLAP_F_B,6B6,(6F8;1B4)OVERLAP_F_B,6B7,"
      "(6F9;1B5)OVERLAP_F_B,6B8,1B6,6I9,1I7,6W9,1I8,1W7,1I9,1W8,1W9\n"
      "2F0,2F1,2F2,5F0,2F3,5F1,2F4,5F2,5I0,5W0,5F3,(2F5;5B1)OVERLAP_F_B,"
      "(5F4;2B0)OVERLAP_F_B,(2F6;5B2)OVERLAP_F_B,(5F5;2B1)OVERLAP_F_B,"
      "(2F7;5B3)OVERLAP_F_B,(5F6;2B2)OVERLAP_F_B,(2F8;5B4)OVERLAP_F_B,"
      "(5F7;2B3)OVERLAP_F_B,(2F9;5B5)OVERLAP_F_B,(5F8;2B4)OVERLAP_F_B,5B6,"
      "(5F9;2B5)OVERLAP_F_B,5B7,2B6,5B8,2I7,5I9,2I8,2W7,2I9,5W9,2W8,2W9\n"
      "3F0,4F0,3F1,4F1,3F2,4F2,3F3,4F3,3F4,4B0,(4F4;3B0)OVERLAP_F_B,"
      "(3F5;4B1)OVERLAP_F_B,(4F5;3B1)OVERLAP_F_B,(3F6;4B2)OVERLAP_F_B,"
      "(4F6;3B2)OVERLAP_F_B,(3F7;4B3)OVERLAP_F_B,(4F7;3B3)OVERLAP_F_B,"
      "(3F8;4B4)OVERLAP_F_B,(4F8;3B4)OVERLAP_F_B,(3F9;4B5)OVERLAP_F_B,"
      "(4F9;3B5)OVERLAP_F_B,4B6,3B6,4B7,3B7,4I8,3I8,4I9,3I9,4W8,3W8,4W9,3W9\n";
  EXPECT_EQ(PrintCsv(Generated("dualpipe-v", {4, 10, 2})), kRows);
}

// The program that a PyTorch user printed in issue 172668: Interleaved1F1B on 2
// ranks with 2 stages each. Megatron-LM's order runs 3F1 before 3B0 here.
TEST(LowerTest, ShardingAndReductionStandWherePyTorchPutsThem) {
  EXPECT_EQ(Lowered(FromText("0F0,0F1,2F0,2F1,2B0,2B1,0B0,0B1\n"
                             "1F0,1F1,3F0,3B0,3F1,3B1,1B0,1B1"),
                    {}),
            "0UNSHARD,2UNSHARD,0F0,0SEND_F0,2RECV_F0,0F1,0SEND_F1,2RECV_F1,2F0,"
            "2SEND_F0,2F1,2SEND_F1,2RECV_B0,2B0,2SEND_B0,2RECV_B1,2B1,2SEND_B1,"
            "2REDUCE_GRAD,2RESHARD,0RECV_B0,0B0,0RECV_B1,0B1,0REDUCE_GRAD,"
            "0RESHARD\n"
            "1UNSHARD,3UNSHARD,1RECV_F0,1F0,1SEND_F0,1RECV_F1,1F1,1SEND_F1,"
            "3RECV_F0,3F0,3RECV_F1,3B0,3SEND_B0,1RECV_B0,3F1,3B1,3SEND_B1,"
            "1RECV_B1,3REDUCE_GRAD,3RESHARD,1B0,1SEND_B0,1B1,1SEND_B1,"
            "1REDUCE_GRAD,1RESHARD\n");
}

TEST(LowerTest, NeighboursOnOneRankExchangeNothing) {
  EXPECT_EQ(
      Lowered(FromText("0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0"), kTransfersOnly),
      "0F0,0SEND_F0,3RECV_F0,3F0,3B0,3SEND_B0,0RECV_B0,0B0\n"
      "1RECV_F0,1F0,2F0,2SEND_F0,2RECV_B0,2B0,1B0,1SEND_B0\n");
}

TEST(LowerTest, BothOfAPairSendAfterIt) {
  EXPECT_EQ(
      Lowered(FromText("0F0,0F1,0B0,0B1\n1F0,(1F1;1B0)OVERLAP_F_B,1B1"),
              kTransfersOnly),
      "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
      "1RECV_F0,1F0,1RECV_F1,(1F1;1B0)OVERLAP_F_B,1SEND_B0,1B1,1SEND_B1\n");
}

// The transfers of a pair are separate actions.
TEST(LowerTest, OnlyPassesRunTogether) {
  const Schedule schedule = FromText(
      "0F0,0F1,0B0,0B1\n1F0,(1F1;1B0)OVERLAP_F_B,1B1\n2F0,2B0,2F1,2B1");
  const auto lowered = LowerSchedule(schedule, {});
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  for (const CommProgram& program : {*lowered, LowerInProgramOrder(schedule)}) {
    int num_pairs = 0;
    for (const auto& row : program.ranks) {
      for (size_t i = 0; i < row.size(); ++i) {
        if (!row[i].with_next) continue;
        ++num_pairs;
        EXPECT_TRUE(IsScheduled(row[i].op));
        ASSERT_LT(i + 1, row.size());
        EXPECT_TRUE(IsScheduled(row[i + 1].op));
      }
    }
    EXPECT_EQ(num_pairs, 1);
  }
}

TEST(LowerTest, NoMoreThanThreeStagesAreGathered) {
  // A single rank runs four stages forward and backward. The fourth is gathered
  // once the first is no longer among the next three.
  EXPECT_EQ(Lowered(FromText("0F0,1F0,2F0,3F0,3B0,2B0,1B0,0B0"),
                    {.max_active_stages = 3, .reduce_gradients = false}),
            "0UNSHARD,1UNSHARD,2UNSHARD,0F0,0RESHARD,3UNSHARD,1F0,2F0,3F0,3B0,"
            "3RESHARD,0UNSHARD,2B0,2RESHARD,1B0,1RESHARD,0B0,0RESHARD\n");
}

TEST(LowerTest, DeadlockIsNamed) {
  EXPECT_THAT(LowerSchedule(FromText("0F0,0B1,0F1,0B0\n1F0,1F1,1B1,1B0"), {})
                  .status()
                  .message(),
              HasSubstr("deadlock: rank 0 waits at position 1 (0B1)"));
}

// Lowering uses one order for all ranks, so no transfer can deadlock.
TEST(LowerTest, EveryKindsProgramMeetsAndRunsOnOneStream) {
  for (const ScheduleKind& kind : AllScheduleKinds()) {
    for (int ranks : {1, 2, 3, 4}) {
      for (int chunks : {1, 2, 3}) {
        for (int microbatches : {1, 2, 4, 6, 8, 12}) {
          const ScheduleSpec spec = {ranks, microbatches, chunks,
                                     kind.flush ? 1 : 2};
          if (!kind.check(spec).ok()) continue;
          const Schedule schedule = kind.generate(spec);
          ASSERT_TRUE(ValidateSchedule(schedule).ok())
              << kind.name << ranks << "x" << chunks << "x" << microbatches
              << ValidateSchedule(schedule);
          absl::StatusOr<CommProgram> program = LowerSchedule(schedule, {});
          ASSERT_TRUE(program.ok()) << kind.name << program.status();
          EXPECT_EQ(PassesOf(*program), schedule.rank_actions);
          std::vector<TransferFault> faults;
          const Links links = LinkProgram(*program, 10, &faults);
          ASSERT_TRUE(faults.empty()) << kind.name << faults[0].message;
          EXPECT_TRUE(RunProgram(*program, links, TransferRule::kOneStream)
                          .cycle.empty())
              << kind.name;
          EXPECT_TRUE(RunProgram(*program, links, TransferRule::kBlocking)
                          .cycle.empty())
              << kind.name;
        }
      }
    }
  }
}

}  // namespace weir::schedules::lower_test
