// SPDX-License-Identifier: Apache-2.0
#include "schedules/action.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weir::schedules::action_test {

using testing::HasSubstr;

TEST(ActionTest, TextFormIsStageLetterMicrobatch) {
  EXPECT_EQ(ToString(Action{Op::kForward, 2, 0}), "2F0");
  EXPECT_EQ(ToString(Action{Op::kBackward, 10, 31}), "10B31");
  EXPECT_EQ(ToString(Action{Op::kBackwardInput, 1, 3}), "1I3");
  EXPECT_EQ(ToString(Action{Op::kBackwardWeight, 0, 3}), "0W3");
}

TEST(ActionTest, TextFormRoundTrips) {
  for (Op op :
       {Op::kForward, Op::kBackward, Op::kBackwardInput, Op::kBackwardWeight}) {
    for (int32_t stage : {0, 7, 10, 399'999'999}) {
      const Action action = {op, stage, 399'999'999 - stage};
      absl::StatusOr<Action> parsed = ParseAction(ToString(action));
      ASSERT_TRUE(parsed.ok()) << parsed.status();
      EXPECT_EQ(*parsed, action);
    }
  }
}

TEST(ActionTest, LeadingZerosAreTheSameNumber) {
  absl::StatusOr<Action> parsed = ParseAction("02F00");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(*parsed, (Action{Op::kForward, 2, 0}));
}

TEST(ActionTest, EverythingElseIsRefused) {
  for (absl::string_view text : {"",
                                 "F",
                                 "2F",
                                 "F0",
                                 "2f0",
                                 "2BW0",
                                 "2SEND_F0",
                                 "2F0 ",
                                 " 2F0",
                                 "2F0x",
                                 "-1F0",
                                 "2F-1",
                                 "+2F0",
                                 "2 F0",
                                 "2.0F0",
                                 "0x2F0",
                                 "2UNSHARD",
                                 "2B0-",
                                 "2B0-x",
                                 "2B0-0",
                                 "2B3-2",
                                 "2B0-65535",
                                 "400000000F0",
                                 "0F400000000",
                                 "99999999999999999999F0",
                                 "0F18446744073709551616"}) {
    absl::StatusOr<Action> parsed = ParseAction(text);
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument)
        << text;
    EXPECT_THAT(parsed.status().message(),
                HasSubstr(absl::StrCat("'", text.substr(0, 24))));
  }
}

TEST(ActionTest, ErrorOfLongGarbageIsShort) {
  absl::StatusOr<Action> parsed = ParseAction(std::string(100'000, '\n'));
  EXPECT_LT(parsed.status().message().size(), 250);
}

}  // namespace weir::schedules::action_test
