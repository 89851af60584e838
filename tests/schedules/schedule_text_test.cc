// SPDX-License-Identifier: Apache-2.0
#include "schedules/schedule_text.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedules/validate.h"
#include "tests/schedules/test_schedules.h"

namespace weir {
namespace {

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

bool HasPairs(const Schedule& schedule) {
  for (const std::vector<Action>& actions : schedule.rank_actions) {
    for (const Action& action : actions) {
      if (action.overlaps_next) return true;
    }
  }
  return false;
}

TEST(ScheduleTextTest, EveryKindRoundTrips) {
  for (const ScheduleKind& kind : AllScheduleKinds()) {
    ScheduleSpec spec = LegalSpec(kind);
    spec.num_batches = 1;
    const Schedule schedule = kind.generate(spec);
    // The rows have no place for these.
    if (schedule.num_routes() > 1 || HasPairs(schedule)) continue;
    absl::StatusOr<std::vector<std::vector<Action>>> rows =
        ParseCsv("test", PrintCsv(schedule));
    ASSERT_TRUE(rows.ok()) << rows.status();
    EXPECT_EQ(*rows, schedule.rank_actions);
    absl::StatusOr<Schedule> rebuilt = ScheduleFromRows(kind.name, *rows);
    ASSERT_TRUE(rebuilt.ok()) << rebuilt.status();
    EXPECT_EQ(rebuilt->routes, schedule.routes);
    EXPECT_EQ(rebuilt->num_microbatches, schedule.num_microbatches);
    EXPECT_TRUE(ValidateSchedule(*rebuilt).ok());
    EXPECT_EQ(PrintCsv(*rebuilt), PrintCsv(schedule));
  }
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

TEST(ScheduleTextTest, ErrorsNameLineColumnAndWhatWasFound) {
  EXPECT_THAT(ErrorOf("0F0,0B0\n1F0, 2BW0 ,1B0x\n"),
              AllOf(HasSubstr("a.csv:2:6: '2BW0' is not an action"),
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

TEST(ScheduleTextTest, StageOnTwoRanksIsAnError) {
  EXPECT_THAT(FromRowsError("0F0,0B0\n1F0,0B0"),
              HasSubstr("rank 1: 0B0 is of stage 0, which rank 0 holds"));
}

TEST(ScheduleTextTest, StageWithoutActionsIsAnError) {
  EXPECT_THAT(FromRowsError("0F0,0B0\n2F0,2B0"),
              HasSubstr("stage 1 has no action"));
}

TEST(ScheduleTextTest, AbsurdStageTakesNoMemory) {
  EXPECT_THAT(FromRowsError("399999999F0"),
              HasSubstr("has 1 actions, expected some of every stage up to "
                        "399999999"));
}

TEST(ScheduleTextTest, AbsurdMicrobatchIsRefusedByTheValidator) {
  absl::StatusOr<Schedule> schedule =
      ScheduleFromRows("a.csv", ParseCsv("a.csv", "0F399999999").value());
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_THAT(
      ValidateSchedule(*schedule).message(),
      HasSubstr("has 1 actions, expected one or more for each of 1 stages x "
                "400000000 microbatches"));
}

}  // namespace
}  // namespace weir
