// SPDX-License-Identifier: Apache-2.0
#include "schedules/source.h"

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedules/interop/lower.h"
#include "schedules/interop/schedule_json.h"
#include "schedules/semantics.h"
#include "tests/schedules/test_schedules.h"

namespace weir::schedules::source_test {

using testing::AllOf;
using testing::HasSubstr;

std::string Written(const std::string& name, absl::string_view text) {
  std::string path = absl::StrCat(testing::TempDir(), "/", name);
  EXPECT_TRUE(WriteFile(path, text).ok());
  return path;
}

std::string JsonOf(const Schedule& schedule) {
  return ScheduleJson(schedule, InterpretSchedule(schedule).value());
}

TEST(SourceTest, AFileIsTold) {
  EXPECT_TRUE(IsScheduleFile("a/b"));
  EXPECT_TRUE(IsScheduleFile("b.csv"));
  EXPECT_TRUE(IsScheduleFile("b.JSON"));
  EXPECT_FALSE(IsScheduleFile("gpipe"));
}

TEST(SourceTest, AFileBringsItsShape) {
  const std::string path =
      Written("shape.csv", PrintCsv(Generated("interleaved-1f1b", {2, 4, 3})));
  absl::StatusOr<Schedule> schedule = GetSchedule(path, {2, 4, 3});
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_EQ(schedule->rank_actions,
            Generated("interleaved-1f1b", {2, 4, 3}).rank_actions);
  EXPECT_EQ(schedule->name, path);
  EXPECT_THAT(GetSchedule(path, {4, 8, 1}).status().message(),
              AllOf(HasSubstr("pipeline is 2, but 4 is requested"),
                    HasSubstr("chunks is 3, but 1 is requested"),
                    HasSubstr("num_microbatches is 4, but 8 is requested")));
}

TEST(SourceTest, NamesAreGenerated) {
  EXPECT_TRUE(GetSchedule("1f1b", {2, 4}).ok());
  EXPECT_TRUE(*ScheduleFlushes("1f1b"));
  EXPECT_FALSE(*ScheduleFlushes("pipedream"));
}

TEST(SourceTest, TransfersOfAFileAreChecked) {
  const Schedule schedule = Generated("1f1b", {2, 4});
  const std::string good = PrintCsv(LowerSchedule(schedule, {}).value());
  absl::StatusOr<Schedule> loaded =
      LoadScheduleFile(Written("comms.csv", good));
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->rank_actions, schedule.rank_actions);
  EXPECT_THAT(
      LoadScheduleFile(
          Written("bad.csv", "0F0,0SEND_F0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0"))
          .status()
          .message(),
      HasSubstr("bad.csv:1:14: 0B0 has no RECV_B"));
}

TEST(SourceTest, MissingFilesAreNamed) {
  EXPECT_THAT(LoadScheduleFile("/nowhere/a.csv").status().message(),
              HasSubstr("/nowhere/a.csv"));
}

TEST(SourceTest, JsonGivesEveryKindBack) {
  for (const ScheduleKind& kind : AllScheduleKinds()) {
    const ScheduleSpec spec = {4, 8, kind.name == "interleaved-1f1b" ? 2 : 1,
                               kind.flush ? 1 : 3};
    if (!kind.check(spec).ok()) continue;
    const Schedule schedule = kind.generate(spec);
    absl::StatusOr<Schedule> again =
        ParseScheduleJson(schedule.name, JsonOf(schedule));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->rank_actions, schedule.rank_actions);
    EXPECT_EQ(again->routes, schedule.routes);
    EXPECT_EQ(again->weights, schedule.weights) << kind.name;
    EXPECT_EQ(again->flush, schedule.flush);
    EXPECT_EQ(JsonOf(*again), JsonOf(schedule));
  }
}

TEST(SourceTest, BrokenJsonIsNamedFieldByField) {
  const auto error = [](absl::string_view text) {
    return std::string(ParseScheduleJson("a.json", text).status().message());
  };
  EXPECT_THAT(error("[1"), HasSubstr("a.json:1:3: is not JSON"));
  EXPECT_THAT(error("[1]"), HasSubstr("a.json: is not a JSON object"));
  EXPECT_THAT(error(std::string(1 << 20, '[')), HasSubstr("nested deeper"));
  EXPECT_THAT(
      error("{\"num_ranks\": 1.5, \"flush\": 1}"),
      AllOf(HasSubstr("num_ranks is number, expected a different type"),
            HasSubstr("flush is number"), HasSubstr("weights is missing"),
            HasSubstr("ranks is missing")));
  Schedule schedule = Generated("gpipe", {1, 1});
  std::string json = JsonOf(schedule);
  const std::string known = "\"prediction\": \"none\"";
  const size_t at = json.find(known);
  ASSERT_NE(at, std::string::npos) << json;
  json.replace(at, known.size(), "\"prediction\": \"nine\"");
  EXPECT_THAT(error(json), HasSubstr("prediction is unknown: 'nine'"));
}

}  // namespace weir::schedules::source_test
