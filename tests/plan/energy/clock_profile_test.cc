// SPDX-License-Identifier: Apache-2.0
#include "plan/energy/clock_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "plan/energy/clock_profile_views.h"

namespace weir::plan::clock_profile_test {

using schedules::Op;
using testing::HasSubstr;

TEST(ClockProfileTest, ReadsPassesScalesAndAveragesThem) {
  const auto profile = ReadClockProfile(
      "p.csv",
      "stage,instruction,frequency,time,energy\n"
      "0,forward,1410,0.1,20\n0,forward,1200,0.2,15\n0,forward,1200,0.4,17\n"
      "0,backward,1410,0.3,50\n",
      10, 8);
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(profile->num_stages, 1);
  const auto& forward = profile->passes.at({0, Op::kForward});
  ASSERT_EQ(forward.size(), 2u);
  EXPECT_EQ(forward[0].megahertz, 1200);
  EXPECT_NEAR(forward[0].seconds, 3, 1e-12);
  EXPECT_NEAR(forward[0].joules, 16 * 80, 1e-9);
  EXPECT_NEAR(forward[1].joules, 20 * 80, 1e-9);
  EXPECT_THAT(profile->notes,
              testing::ElementsAre(
                  "p.csv: several rows are for the same pass and clock (1 "
                  "case), of which the mean is used"));
}

TEST(ClockProfileTest, RowsOfOneClockThatContradictEachOtherAreRefused) {
  const auto profile =
      ReadClockProfile("p.csv",
                       "stage,instruction,frequency,time,energy\n"
                       "0,forward,1410,0.05,20\n0,backward,1410,0.1,40\n"
                       "0,forward,1410,9,20\n");
  EXPECT_EQ(profile.status().message(),
            "p.csv: stage 0 forward has 0.05 to 9 s and 20 to 20 J at 1410 "
            "MHz, expected measurements that differ by at most a factor of 2");
}

// The least and the most count, in any order of the rows.
TEST(ClockProfileTest, TheOrderOfRowsDoesNotMatter) {
  for (const char* times : {"0.6 1.0 1.9", "1.0 0.6 1.9", "1.9 1.0 0.6"}) {
    std::string text =
        "stage,instruction,frequency,time,energy\n0,backward,1410,1,1\n";
    for (const absl::string_view time : absl::StrSplit(times, ' ')) {
      absl::StrAppend(&text, "0,forward,1410,", time, ",20\n");
    }
    EXPECT_THAT(std::string(ReadClockProfile("p.csv", text).status().message()),
                HasSubstr("has 0.6 to 1.9 s"))
        << times;
  }
}

TEST(ClockProfileTest, KnowsOtherNamesOfColumnsAndSplitBackwards) {
  const auto profile =
      ReadClockProfile("p.csv",
                       "stage,instruction,clock_mhz,seconds,joules\n"
                       "0,F,1410,0.1,20\n0,backward_input,1410,0.1,20\n"
                       "0,backward_weight,1410,0.1,20\n");
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_TRUE(profile->passes.contains({0, Op::kBackwardWeight}));
}

TEST(ClockProfileTest, TheFirstLineTellsAProfile) {
  EXPECT_TRUE(IsClockProfile("stage,instruction,frequency,time,energy\n0,"));
  EXPECT_TRUE(IsClockProfile("frequency, stage ,instruction\r\n"));
  EXPECT_FALSE(IsClockProfile("step,dp_rank,stage,optype,start_ts\n"));
  EXPECT_FALSE(IsClockProfile("{\"stage\": 1, \"instruction\": 2}"));
  EXPECT_FALSE(IsClockProfile(""));
}

TEST(ClockProfileTest, ViewsShowEveryPass) {
  const auto profile =
      ReadClockProfile("p.csv",
                       "stage,instruction,frequency,time,energy\n"
                       "0,forward,1410,0.1,20\n0,forward,1200,0.2,15\n"
                       "0,backward,1410,0.3,50\n");
  ASSERT_TRUE(profile.ok()) << profile.status();
  const std::string table = ClockProfileTable(*profile);
  EXPECT_THAT(table, HasSubstr("profile of 1 stages"));
  EXPECT_THAT(table, HasSubstr("1410"));
  const auto json = nlohmann::json::parse(ClockProfileJson(*profile));
  ASSERT_EQ(json["passes"].size(), 2u);
  for (const auto& pass : json["passes"]) {
    if (pass["pass"] != "forward") continue;
    ASSERT_EQ(pass["clocks"].size(), 2u);
    EXPECT_EQ(pass["clocks"][0]["megahertz"], 1200);
    EXPECT_EQ(pass["clocks"][0]["seconds"], 0.2);
    EXPECT_EQ(pass["clocks"][0]["joules"], 15);
  }
}

TEST(ClockProfileTest, AnUnterminatedRowIsIgnored) {
  const std::string complete =
      "stage,instruction,frequency,time,energy\n"
      "0,forward,1410,0.1,20\n0,backward,1410,0.2,40\n";
  const auto profile =
      ReadClockProfile("p.csv", complete + "0,backward,1005,0.3,3");
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(profile->passes.at({0, Op::kBackward}).size(), 1u);
  ASSERT_EQ(profile->notes.size(), 1u);
  EXPECT_THAT(profile->notes[0], HasSubstr("p.csv: the table ends within"));
  EXPECT_TRUE(ReadClockProfile("p.csv", complete + "\n")->notes.empty());
}

TEST(ClockProfileTest, BadFilesAreRefused) {
  const auto message = [](const std::string& rows) {
    return std::string(
        ReadClockProfile("p.csv",
                         "stage,instruction,frequency,time,energy\n" + rows)
            .status()
            .message());
  };
  EXPECT_THAT(message(""), HasSubstr("p.csv: has no rows"));
  EXPECT_THAT(message("0,sideways,1,1,1\n"),
              HasSubstr("p.csv:2: instruction is \"sideways\", expected"));
  EXPECT_THAT(message("0,forward,1,-1,1\n"), HasSubstr("p.csv:2: time is"));
  EXPECT_THAT(message("0.5,forward,1,1,1\n"), HasSubstr("whole number"));
  EXPECT_THAT(message("1,forward,1,1,1\n1,backward,1,1,1\n"),
              HasSubstr("stage 0 has no forward"));
  EXPECT_THAT(message("0,forward,1,1,1\n"), HasSubstr("0 has no backward"));
  EXPECT_FALSE(ReadClockProfile("p.csv", "stage,time\n0,1\n").ok());
}

}  // namespace weir::plan::clock_profile_test
