// SPDX-License-Identifier: Apache-2.0
#include "results/compare/measured_timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "results/validate.h"

namespace weir::results::measured_timeline_test {

using ::testing::AllOf;
using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kHead[] = "rank,action,start_ms,end_ms,bytes,note\n";

std::string ErrorOf(absl::string_view rows) {
  const auto result = ReadMeasuredTimeline("my.csv", rows);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(result.status().message());
}

TEST(MeasuredTimelineTest, TheFirstStartIsZeroAndReceivesAreLeftOut) {
  const auto result = ReadMeasuredTimeline(
      "my.csv", absl::StrCat(kHead,
                             "1,1RECV_F0,400,1100,,posted early\n"
                             "0,0F0,500,1000,,\n"
                             "0,0SEND_F0,1000,1100,64,\n"
                             "1,1F0,1100,1500,,\n"
                             "1,1B0-1,1500,2000,,\n"
                             "1,1 step u3,2000,2500,,\n"
                             "1,1REDUCE_GRAD,2000,2100,,\n"));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(ValidateResult("my.csv", *result).ok());
  EXPECT_EQ(result->makespan_seconds(), 2);
  const auto& actions = result->timeline().actions();
  EXPECT_THAT(actions.start_seconds(), ElementsAre(0, DoubleEq(0.6), 1, 1.5));
  EXPECT_THAT(actions.op(), ElementsAre(0, 0, 1, 4));
  EXPECT_THAT(actions.num_microbatches(), ElementsAre(1, 1, 2, 1));
  EXPECT_EQ(actions.microbatch(3), 3);
  const auto& transfers = result->timeline().transfers();
  EXPECT_THAT(transfers.to_gpu(), ElementsAre(1));
  EXPECT_THAT(transfers.bytes(), ElementsAre(64));
  EXPECT_THAT(transfers.ready_seconds(), ElementsAre());
  EXPECT_THAT(result->timeline().collectives().kind(), ElementsAre(1));
}

TEST(MeasuredTimelineTest, EveryBadRowIsNamed) {
  EXPECT_THAT(
      ErrorOf(absl::StrCat(kHead, "0,0F0,5,1,,\n0,0Q0,1,2,,\n-1,0B0,2,x,,\n")),
      AllOf(
          HasSubstr(
              "my.csv:2: end_ms is \"1\", expected at least the start time, 5"),
          HasSubstr("my.csv:3: action is \"0Q0\", expected 2F0"),
          HasSubstr("my.csv:4: rank is \"-1\", expected 0 to"),
          HasSubstr("my.csv:4: end_ms is \"x\", expected a number")));
}

TEST(MeasuredTimelineTest, RanksHaveNoGaps) {
  EXPECT_EQ(ErrorOf(absl::StrCat(kHead, "0,0F0,0,1,,\n2,1F0,0,1,,\n")),
            "my.csv: has events of 2 ranks, expected events of all ranks 0, 1, "
            "2, ... without gaps");
  EXPECT_THAT(ErrorOf(kHead), HasSubstr("has events of 0 ranks"));
}

TEST(MeasuredTimelineTest, ATransferNeedsWhoTakesIt) {
  EXPECT_EQ(ErrorOf(absl::StrCat(kHead, "0,0F0,0,1,,\n0,0SEND_F0,1,2,,\n")),
            "my.csv:3: 0SEND_F0 has no matching receive, expected 1F0 on some "
            "rank");
}

TEST(MeasuredTimelineTest, ColumnsHaveKnownNamesAndOneUnit) {
  EXPECT_THAT(ErrorOf("rank,action,begin,end\n"),
              HasSubstr("has no column start_seconds, start_ms"));
  EXPECT_THAT(ErrorOf("rank,action,start_us,end_ms\n"),
              HasSubstr("has no column end_us"));
  EXPECT_THAT(ErrorOf("rank,action,start_us,end_us,redy_us\n"),
              HasSubstr("has a column redy_us; did you mean ready_us?"));
}

}  // namespace weir::results::measured_timeline_test
