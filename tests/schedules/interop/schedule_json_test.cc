// SPDX-License-Identifier: Apache-2.0
#include "schedules/interop/schedule_json.h"

#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedules/validate.h"
#include "tests/schedules/test_schedules.h"

namespace weir::schedules::schedule_json_test {

using Json = nlohmann::json;

Json Parsed(const Schedule& schedule) {
  return Json::parse(
      ScheduleJson(schedule, InterpretSchedule(schedule).value()));
}

TEST(ScheduleJsonTest, SaysTheWholeOfASmallSchedule) {
  EXPECT_EQ(Parsed(Generated("gpipe", {1, 1})), Json::parse(R"({
    "schedule": "gpipe", "num_ranks": 1, "num_stages": 1,
    "num_microbatches": 1, "num_batches": 1, "flush": true,
    "routes": [[0]], "microbatches_per_route_turn": 1,
    "forward_only": false, "resident_activations": 0,
    "compressed_transfers": false,
    "weights": {"microbatches_per_update": 1, "times_replicas": false,
                "forward": "latest", "delay_updates": 0,
                "backward": "same-as-forward", "prediction": "none",
                "forward_distance": [], "backward_distance": [],
                "estimate_buffers": 0, "predicted_copies": 0},
    "ranks": [{"rank": 0, "actions": ["0F0", "0B0"]}],
    "versions": [{"stage": 0, "microbatch": 0, "forward_version": 0,
                  "backward_version": 0, "update": 0, "staleness": 0}],
    "max_live_versions": [1], "max_staleness": [0],
    "verdict": "equal to minibatch SGD"})"));
}

TEST(ScheduleJsonTest, VersionsGoStageByStage) {
  const Json json = Parsed(Generated("pipedream", {2, 3, 1, 2}));
  ASSERT_EQ(json["versions"].size(), 12u);
  EXPECT_EQ(json["versions"][5], Json::parse(R"({
    "stage": 0, "microbatch": 5, "forward_version": 4, "backward_version": 4,
    "update": 5, "staleness": 1})"));
  EXPECT_EQ(json["versions"][6]["stage"], 1);
  EXPECT_EQ(json["versions"][6]["microbatch"], 0);
  EXPECT_EQ(json["max_staleness"], Json::parse("[1, 0]"));
  EXPECT_EQ(json["max_live_versions"], Json::parse("[2, 1]"));
}

TEST(ScheduleJsonTest, KeysKeepTheirOrder) {
  const Schedule schedule = Generated("gpipe", {2, 2});
  const std::string text =
      ScheduleJson(schedule, InterpretSchedule(schedule).value());
  EXPECT_LT(text.find("\"schedule\""), text.find("\"num_ranks\""));
  EXPECT_LT(text.find("\"ranks\""), text.find("\"versions\""));
  EXPECT_LT(text.find("\"versions\""), text.find("\"verdict\""));
}

TEST(ScheduleJsonTest, ARankWithoutActionsReadsBack) {
  Schedule schedule = Generated("gpipe", {1, 1});
  schedule.num_ranks = 2;
  schedule.routes = {{0}, {1}};  // the only microbatch takes the first
  schedule.rank_actions.emplace_back();
  ASSERT_TRUE(ValidateSchedule(schedule).ok()) << ValidateSchedule(schedule);
  const auto again = ParseScheduleJson(
      "test", ScheduleJson(schedule, InterpretSchedule(schedule).value()));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->rank_actions, schedule.rank_actions);
}

TEST(ScheduleJsonTest, NameThatIsNotUtf8IsReplaced) {
  Schedule schedule = Generated("gpipe", {1, 1});
  schedule.name = "caf\xe9.csv";
  EXPECT_EQ(Parsed(schedule)["schedule"], "caf\xef\xbf\xbd.csv");
}

std::string ErrorOf(const std::string& text) {
  return std::string(ParseScheduleJson("a.json", text).status().message());
}

TEST(ScheduleJsonTest, SyntaxErrorsHaveALineAndAColumn) {
  EXPECT_THAT(ErrorOf("{\n  \"flush\": ,\n}"),
              testing::StartsWith("a.json:2:12: is not JSON"));
  EXPECT_THAT(ErrorOf(""), testing::StartsWith("a.json:1:1: is not JSON"));
  EXPECT_THAT(ErrorOf("[1]"),
              testing::StartsWith("a.json: is not a JSON object"));
}

TEST(ScheduleJsonTest, BadActionsAreNamedByTheirField) {
  Json json = Parsed(Generated("gpipe", {2, 3}));
  json["ranks"][1]["actions"][2] = "F7";
  EXPECT_THAT(ErrorOf(json.dump()),
              testing::HasSubstr("a.json: ranks[1].actions[2]: action:1:1: "
                                 "'F7' is not an action"));
  // Two actions in one, or a row of another rank.
  for (const char* text : {"0F0,0B0", "0F0\n1F0"}) {
    json["ranks"][1]["actions"][2] = text;
    EXPECT_THAT(ErrorOf(json.dump()),
                testing::HasSubstr("ranks[1].actions[2] is \"0F0"));
  }
}

}  // namespace weir::schedules::schedule_json_test
