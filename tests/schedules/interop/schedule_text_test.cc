// SPDX-License-Identifier: Apache-2.0
#include "schedules/interop/schedule_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedules/validate.h"
#include "tests/schedules/test_schedules.h"

namespace weir::schedules::schedule_text_test {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string ErrorOf(absl::string_view text) {
  return std::string(ParseCsv("a.csv", text).status().message());
}

std::string FromRowsError(absl::string_view text) {
  return std::string(ScheduleFromRows("a.csv", ParseCsv("a.csv", text).value())
                         .status()
                         .message());
}

TEST(ScheduleTextTest, EveryKindRoundTrips) {
  for (const ScheduleKind& kind : AllScheduleKinds()) {
    for (int chunks : {1, 2, 3}) {
      const ScheduleSpec spec = {
          .num_ranks = 4, .num_microbatches = 12, .num_chunks = chunks};
      if (!kind.check(spec).ok()) continue;
      const Schedule schedule = kind.generate(spec);
      absl::StatusOr<std::vector<std::vector<Action>>> rows =
          ParseCsv("test", PrintCsv(schedule));
      ASSERT_TRUE(rows.ok()) << kind.name << rows.status();
      EXPECT_EQ(*rows, schedule.rank_actions);
      absl::StatusOr<Schedule> rebuilt = ScheduleFromRows(kind.name, *rows);
      ASSERT_TRUE(rebuilt.ok()) << rebuilt.status();
      EXPECT_EQ(rebuilt->num_microbatches, schedule.total_microbatches());
      EXPECT_EQ(rebuilt->forward_only, schedule.forward_only);
      // Different routes may represent the same placement.
      for (int stage = 0; stage < schedule.num_stages; ++stage) {
        for (int k = 0; k < schedule.total_microbatches(); ++k) {
          ASSERT_EQ(rebuilt->rank_of(stage, k), schedule.rank_of(stage, k))
              << kind.name;
        }
      }
      EXPECT_TRUE(ValidateSchedule(*rebuilt).ok());
      EXPECT_EQ(PrintCsv(*rebuilt), PrintCsv(schedule));
    }
  }
}

TEST(ScheduleTextTest, TransfersAndOverlappedPairsRoundTrip) {
  constexpr absl::string_view kText =
      "0UNSHARD,0F0,0SEND_F0,(0F1;0B0)OVERLAP_F_B,0RECV_B0,0REDUCE_GRAD,"
      "0RESHARD\n"
      "1RECV_F0,1I0,1SEND_B0,1W0,2O0,2R0,1B0-3\n";
  absl::StatusOr<ScheduleRows> rows = ParseScheduleRows("a.csv", kText);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_TRUE(rows->has_transfers());
  EXPECT_EQ(PrintCsv(rows->program), kText);
  EXPECT_TRUE(PassesOf(rows->program)[0][1].overlaps_next);
  EXPECT_FALSE(PassesOf(rows->program)[0][2].overlaps_next);
  EXPECT_THAT(
      ErrorOf(kText),
      HasSubstr("a.csv:1:1: '0UNSHARD' is a transfer, expected only passes"));
}

TEST(ScheduleTextTest, PlacesTellStepAndColumn) {
  absl::StatusOr<ScheduleRows> rows =
      ParseScheduleRows("a.csv", "0F0,, (0F1; 0B0)OVERLAP_F_B\r\n");
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->places[0].size(), 3);
  EXPECT_EQ(rows->places[0][1].step, 2);
  EXPECT_EQ(rows->places[0][1].column, 8);
  EXPECT_EQ(rows->places[0][2].step, 2);
  EXPECT_EQ(rows->places[0][2].column, 13);
  EXPECT_EQ(rows->first_idle_column[0], 5);
}

TEST(ScheduleTextTest, MalformedOverlapsAreErrors) {
  EXPECT_THAT(ErrorOf("0F0,(0F1;0B0)"),
              HasSubstr("a.csv:1:5: expected OVERLAP_F_B after"));
  EXPECT_THAT(ErrorOf("(0F1;0B0"), HasSubstr("a.csv:1:1: expected"));
  EXPECT_THAT(ErrorOf("(0F1)OVERLAP_F_B"), HasSubstr("overlaps 1 actions"));
  EXPECT_THAT(ErrorOf("(0F1;0F2;0B0)OVERLAP_F_B"),
              HasSubstr("overlaps 3 actions"));
  EXPECT_THAT(ErrorOf("(0F1;x)OVERLAP_F_B"), HasSubstr("a.csv:1:6: 'x'"));
}

TEST(ScheduleTextTest, StagesActionsHaveNoMicrobatchAndAllWordsEnd) {
  for (absl::string_view text : {"0UNSHARD1", "0SEND_F", "0SEND_F0x", "0SEND0",
                                 "0F", "F0", "0REDUCE_GRAD0", "0RECV_F-1"}) {
    EXPECT_THAT(ErrorOf(text), HasSubstr("is not an action")) << text;
  }
}

// zb1p_2rank_2stagep_compute.csv as shipped by PyTorch in 2024 and today.
TEST(ScheduleTextTest, TheDialectOf2024IsRefusedAndConverted) {
  constexpr absl::string_view kOld =
      "0F0,0F1,2F0,,2F1,2B0,2W0,0F2,2B1,2W1,0F3,0B0,0W0\n"
      ",1F0,1F1,3F0,3B0,3F1,3B1,3W0,1F2,1BW0,3W1\n";
  EXPECT_THAT(ErrorOf(kOld),
              HasSubstr("a.csv:2:34: '1BW0' is in PyTorch's dialect of 2024"));
  EXPECT_THAT(ErrorOf("0F0,0B0,0W0"),
              AllOf(HasSubstr("a.csv:1:9: '0W0 next to 0B0' is in"),
                    HasSubstr("--dialect pytorch-legacy")));
  absl::StatusOr<ScheduleRows> rows =
      ParseScheduleRows("a.csv", kOld, CsvDialect::kPyTorchLegacy);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(PrintCsv(rows->program),
            "0F0,0F1,2F0,2F1,2I0,2W0,0F2,2I1,2W1,0F3,0I0,0W0\n"
            "1F0,1F1,3F0,3I0,3F1,3I1,3W0,1F2,1B0,3W1\n");
}

TEST(ScheduleTextTest, MixedDialectsAreRefusedEitherWay) {
  constexpr absl::string_view kMixed = "0F0,0F1,0BW0,0I1,0W1";
  EXPECT_THAT(
      ErrorOf(kMixed),
      AllOf(HasSubstr("a.csv:1:9: '0BW0' is in"),
            HasSubstr("'0I1' at a.csv:1:14 is in the current dialect")));
  EXPECT_THAT(
      std::string(ParseScheduleRows("a.csv", kMixed, CsvDialect::kPyTorchLegacy)
                      .status()
                      .message()),
      HasSubstr("a.csv:1:14"));
}

TEST(ScheduleTextTest, WhatPyTorchCannotReadIsNamed) {
  EXPECT_TRUE(CheckPyTorchReads(FromText("0F0,0B0")).ok());
  EXPECT_THAT(CheckPyTorchReads(FromText("0F0-1,0O0,0R0,0B0-1\n")).message(),
              AllOf(HasSubstr("0F0-1 covers several microbatches"),
                    HasSubstr("0O0 moves activations")));
  EXPECT_THAT(CheckPyTorchReads(FromText("0F0,0B0\n0F1,0B1")).message(),
              HasSubstr("stage 0 is replicated on ranks 0 and 1"));
  EXPECT_THAT(CheckPyTorchReads(FromText("0F0")).message(),
              HasSubstr("has no backward"));
}

TEST(InferTest, PeriodicRanksAreRoutes) {
  // Microbatches 0 and 1 go forward, 2 and 3 in reverse, 4 and 5 forward again.
  const Schedule schedule =
      FromText("0F0,0F1,1F2,1F3,0F4,0F5\n1F0,1F1,0F2,0F3,1F4,1F5");
  EXPECT_EQ(schedule.microbatches_per_route_turn, 2);
  EXPECT_THAT(schedule.routes,
              ElementsAre(ElementsAre(0, 1), ElementsAre(1, 0)));
  // The last turn is incomplete.
  EXPECT_EQ(FromText("0F0,0F1,0F4\n0F2,0F3").microbatches_per_route_turn, 2);
  // Two of three microbatches are on one rank: a turn of one.
  const Schedule three = FromText("0F0,0F1,0F3,0F4\n0F2,0F5");
  EXPECT_EQ(three.microbatches_per_route_turn, 1);
  EXPECT_EQ(three.num_routes(), 3);
}

TEST(InferTest, OneMicrobatchOnTwoRanksIsAnError) {
  EXPECT_THAT(FromRowsError("0F0,1F0\n0B0,1B0"),
              HasSubstr("rank 1: 0B0 is of stage 0, which rank 0 holds for "
                        "microbatch 0"));
}

TEST(ScheduleTextTest, WhitespaceIdleCellsAndCrLfMeanNothing) {
  absl::StatusOr<std::vector<std::vector<Action>>> rows =
      ParseCsv("test", " 0F0 ,\t0B0,,\r\n,1F0,,1B0\r\n\r\n");
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(*rows, ElementsAre(ElementsAre(Action{Op::kForward, 0, 0},
                                             Action{Op::kBackward, 0, 0}),
                                 ElementsAre(Action{Op::kForward, 1, 0},
                                             Action{Op::kBackward, 1, 0})));
}

TEST(ScheduleTextTest, AByteOrderMarkMeansNothing) {
  const auto rows = ParseCsv("test",
                             "\xEF\xBB\xBF"
                             "0F0,0B0\n");
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->at(0).size(), 2u);
  EXPECT_THAT(ErrorOf("0F0,\xEF\xBB\xBF"
                      "0B0"),
              HasSubstr("a.csv:1:5:"));
}

TEST(ScheduleTextTest, ErrorsNameLineColumnAndWhatWasFound) {
  EXPECT_THAT(ErrorOf("0F0,0B0\n1F0, 2XW0 ,1B0x\n"),
              AllOf(HasSubstr("a.csv:2:6: '2XW0' is not an action"),
                    HasSubstr("a.csv:2:12: '1B0x' is not an action")));
  EXPECT_THAT(ErrorOf("0F99999999999"),
              HasSubstr("a.csv:1:1: '0F99999999999'"));
  EXPECT_THAT(ErrorOf("0F0\r1F0"), HasSubstr("a.csv:1:1: '0F0\\r1F0'"));
}

TEST(ScheduleTextTest, EmptyLineInTheMiddleIsAnError) {
  EXPECT_THAT(ErrorOf("0F0\n\n1F0"),
              HasSubstr("a.csv:2:1: is empty, expected the actions of rank 1"));
  EXPECT_THAT(ErrorOf(" \r\n \n"), HasSubstr("a.csv:1:1: is empty"));
}

TEST(ScheduleTextTest, ErrorsOfAnotherKindOfFileAreCut) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "{\"json\": [1, 2]},\n\n";
  EXPECT_LT(ErrorOf(text).size(), 5000);
}

TEST(ScheduleTextTest, TooManyLinesAreRefused) {
  EXPECT_THAT(ErrorOf(std::string(200'002, ',')
                          .replace(1, 200'001,
                                   [] {
                                     std::string lines;
                                     for (int i = 0; i < 100'001; ++i)
                                       lines += "\n,";
                                     return lines;
                                   }())),
              HasSubstr("expected at most 100000 lines"));
}

TEST(ScheduleTextTest, StageWithoutActionsIsAnError) {
  EXPECT_THAT(FromRowsError("0F0,0B0\n2F0,2B0"),
              HasSubstr("stage 1 has no action"));
}

TEST(ScheduleTextTest, AbsurdStageTakesNoMemory) {
  EXPECT_THAT(FromRowsError("399999999F0"),
              HasSubstr("399999999F0 is of stage 399999999, but the number of "
                        "actions is 1, expected at least one for every stage"));
}

TEST(ScheduleTextTest, AbsurdMicrobatchTakesNoMemory) {
  EXPECT_THAT(
      FromRowsError("0F399999999"),
      HasSubstr("0F399999999 is of microbatch 399999999, but the number of "
                "actions is 1, expected one or more for each of 1 stages x "
                "400000000 microbatches"));
}

TEST(ScheduleTextTest, ErrorsPastTheFifthAreCounted) {
  std::string text = "F0";
  for (int k = 1; k < 100; ++k) absl::StrAppend(&text, ",F", k);
  const std::vector<std::string> lines = absl::StrSplit(ErrorOf(text), '\n');
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_THAT(lines[4], HasSubstr("a.csv:1:13: 'F4' is not an action"));
  EXPECT_EQ(lines[5], "a.csv: and 95 more cells with errors");
}

}  // namespace weir::schedules::schedule_text_test
