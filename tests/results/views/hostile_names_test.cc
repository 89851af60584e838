// SPDX-License-Identifier: Apache-2.0
// Checks hostile names in every view of results.
#include "tests/hostile_names.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/csv.h"
#include "base/text.h"
#include "base/text_table.h"
#include "results/compare/accuracy.h"
#include "results/summary.h"
#include "results/views/explanation.h"
#include "results/views/train_study.h"
#include "results/views/views.h"
#include "tests/results/sample.h"

namespace weir::results::hostile_names_test {

using Json = nlohmann::json;

// Returns a result with the name in every text field.
Result Named(const std::string& name) {
  Result result = SampleResult();
  result.set_name(name);
  result.set_schedule(name);
  result.set_method(name);
  result.set_semantics(name);
  result.set_limit(name);
  result.add_warnings(name);
  result.mutable_provenance()->set_weir_version(name);
  for (RankResult& rank : *result.mutable_ranks()) {
    for (MemoryClass& memory : *rank.mutable_peak_memory_classes()) {
      memory.set_name(name);
    }
  }
  return result;
}

// Long names are not wrapped, so that every added line comes from a name.
class HostileResultsTest : public testing::Test {
 protected:
  HostileResultsTest() { SetTextLayout({.wide = true}); }
  ~HostileResultsTest() override { SetTextLayout({}); }
};

TEST_F(HostileResultsTest, NoViewShowsControlCharacters) {
  for (const HostileName& name : HostileNames()) {
    const std::vector<Result> results = {Named(name.text), Named("plain")};
    // There are as many rows and lines as with a plain name.
    const auto num_lines = [](const std::string& text) {
      return std::count(text.begin(), text.end(), '\n');
    };
    const std::string table = ResultTable(results[0]);
    EXPECT_TRUE(IsSafeForTerminal(EscapeControls(table)));
    EXPECT_EQ(num_lines(table), num_lines(ResultTable(results[1])))
        << name.kind << ": " << table;
    const std::string csv = CompareCsv(results);
    EXPECT_TRUE(IsSafeForTerminal(csv)) << name.kind << ": " << csv;
    EXPECT_EQ(num_lines(csv), 3) << name.kind;
    EXPECT_TRUE(IsSafeForTerminal(RanksCsv(results[0]))) << name.kind;
    const auto read = ReadCsv("csv", csv);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->Column("schedule")->Text(0), WithoutControls(name.text));
    if (!name.is_utf8) continue;
    const std::string json = ResultJson("command", results[0]);
    EXPECT_TRUE(IsSafeForTerminal(json)) << name.kind;
    EXPECT_EQ(Json::parse(json)["result"]["name"], name.text);
  }
}

TEST_F(HostileResultsTest, StudiesAndAccuraciesTakeAnyBytes) {
  for (const HostileName& name : HostileNames()) {
    TrainStudy study;
    study.scenario = study.model = study.train_model = name.text;
    study.num_batches = study.samples_per_batch = 1;
    StudySchedule schedule;
    schedule.schedule = schedule.semantics = name.text;
    schedule.curves = {{1, {1.0}}};
    schedule.fits_memory = false;
    study.schedules = {schedule};
    const std::string table = TrainStudyTable(study);
    EXPECT_TRUE(IsSafeForTerminal(table)) << name.kind;
    EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 5) << table;
    const std::string json = TrainStudyJson(study);
    EXPECT_TRUE(IsSafeForTerminal(json)) << name.kind;
    EXPECT_TRUE(Json::parse(json, nullptr, false).is_object()) << name.kind;
    EXPECT_TRUE(IsSafeForTerminal(TrainStudyCsv(study))) << name.kind;
    Accuracy accuracy;
    accuracy.label = name.text;
    accuracy.numbers = {{1, name.text, "step_seconds", 1, 1.5, true}};
    accuracy.skipped = {{2, name.text, name.text}};
    EXPECT_TRUE(IsSafeForTerminal(AccuracyCsv(accuracy))) << name.kind;
    EXPECT_TRUE(
        Json::parse(AccuracyJson(accuracy), nullptr, false).is_object());
  }
}

}  // namespace weir::results::hostile_names_test
