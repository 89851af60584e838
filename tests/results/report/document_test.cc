// SPDX-License-Identifier: Apache-2.0
#include "results/report/document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "results/report/report.h"
#include "tests/hostile_names.h"
#include "tests/results/sample.h"

namespace weir::results::document_test {

using Json = nlohmann::ordered_json;
using ::testing::AllOf;
using ::testing::HasSubstr;

Json Study() {
  return {{"tool", "weir"},
          {"version", "1.2.3"},
          {"command", "train-study --updates 2"},
          {"config", Json::object()},
          {"result",
           {{"scenario", "s"},
            {"train_model", "tiny-gpt"},
            {"samples_per_batch", 8},
            {"num_batches", 2},
            {"target_loss", nullptr},
            {"schedules",
             {{{"schedule", "gpipe"},
               {"semantics", "exact"},
               {"batch_seconds", 1.5},
               {"idle_ratio", 0.25},
               {"final_loss", 4.5},
               {"final_spread", nullptr},
               {"staleness_updates", 0},
               {"weight_versions", 1},
               {"curves", {{{"seed", 1}, {"losses", {4.75, nullptr}}}}}}}}}},
          {"warnings", {"careful"}}};
}

Json HeaderOf(const std::string& block) {
  uint32_t length = 0;
  std::memcpy(&length, block.data(), sizeof(length));
  return Json::parse(block.substr(4, length));
}

TEST(DocumentTest, TheSectionIsTheResult) {
  const Json study = Study();
  const auto document = ReadDocument("s.json", study.dump());
  ASSERT_TRUE(document.ok()) << document.status();
  EXPECT_EQ(document->type, "study");
  EXPECT_EQ(document->version, "1.2.3");
  EXPECT_EQ(document->section["result"], study["result"]);
  EXPECT_EQ(document->section["command"], study["command"]);
  EXPECT_EQ(document->warnings, std::vector<std::string>{"careful"});
}

TEST(DocumentTest, TheReportHasNoRunsUnlessTheyAreGiven) {
  const auto alone = DocumentData("s.json", Study().dump());
  ASSERT_TRUE(alone.ok()) << alone.status();
  Json header = HeaderOf(*alone);
  EXPECT_EQ(header["runs"].size(), 0);
  ASSERT_EQ(header["sections"].size(), 1);
  EXPECT_EQ(header["sections"][0]["type"], "study");
  const Result run = PipelineTimeline(3, 4);
  const auto both = DocumentData("s.json", Study().dump(), {&run, 1});
  ASSERT_TRUE(both.ok()) << both.status();
  header = HeaderOf(*both);
  EXPECT_EQ(header["runs"].size(), 1);
  EXPECT_EQ(header["sections"][0]["type"], "study");
  EXPECT_EQ(header["sections"][1]["type"], "figures");
}

// Checks that the message names the file, the field and both types.
TEST(DocumentTest, FieldsHaveTheTypesThatThePageReads) {
  Json study = Study();
  study["result"]["schedules"][0]["batch_seconds"] = "fast";
  study["result"]["schedules"][0].erase("semantics");
  study["result"]["schedules"][0]["curves"][0]["losses"][1] = true;
  EXPECT_THAT(
      ReadDocument("s.json", study.dump()).status().message(),
      AllOf(HasSubstr("s.json: result.schedules[0].batch_seconds is string, "
                      "expected a number"),
            HasSubstr("result.schedules[0].semantics is missing, expected "
                      "text"),
            HasSubstr("result.schedules[0].curves[0].losses[1] is boolean, "
                      "expected a number or null")));
}

// Replaces every value in turn by values of other types.
TEST(DocumentTest, NoChangeOfAValueCrashes) {
  const Json study = Study();
  const Json flat = study.flatten();
  for (const auto& [path, value] : flat.items()) {
    for (const Json& other : {Json(), Json(3), Json("x"), Json(true),
                              Json::array({1}), Json({{"a", 1}})}) {
      Json changed = study;
      changed[Json::json_pointer(path)] = other;
      const std::string text = changed.dump();
      const auto data = DocumentData("s.json", text);
      if (!data.ok()) {
        EXPECT_THAT(data.status().message(), HasSubstr("s.json: ")) << text;
      }
    }
  }
}

TEST(DocumentTest, OtherJsonIsNamed) {
  const auto message = [](const std::string& text) {
    return std::string(ReadDocument("x.json", text).status().message());
  };
  EXPECT_THAT(message("{\"traceEvents\": []}"),
              HasSubstr("x.json: is a JSON trace, expected"));
  EXPECT_THAT(message("{\"tool\": \"weir\", \"command\": \"compare x\", "
                      "\"results\": []}"),
              HasSubstr("is the JSON output of weir compare x, expected"));
  EXPECT_THAT(message("[1, 2]"), HasSubstr("is JSON that is not the output"));
  EXPECT_THAT(message("{\"a\": "), HasSubstr("is not valid JSON"));
  EXPECT_THAT(message(std::string(100000, '[')),
              HasSubstr("is not valid JSON"));
}

TEST(DocumentTest, HostileNamesStayInsideTheData) {
  for (const HostileName& hostile : HostileNames()) {
    const std::string& name = hostile.text;
    Json study = Study();
    study["command"] = name;
    study["result"]["schedules"][0]["schedule"] = name;
    const auto page = DocumentHtml(
        "s.json", study.dump(-1, ' ', false, Json::error_handler_t::replace));
    ASSERT_TRUE(page.ok()) << page.status();
    EXPECT_FALSE(name.size() > 20 && absl::StrContains(*page, name)) << name;
  }
}

}  // namespace weir::results::document_test
