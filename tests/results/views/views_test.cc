// SPDX-License-Identifier: Apache-2.0
#include "results/views/views.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "base/text.h"
#include "base/text_table.h"
#include "results/summary.h"
#include "results/views/explanation.h"
#include "tests/golden.h"
#include "tests/results/sample.h"

namespace weir::results::views_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr double kGiB = 1024.0 * 1024 * 1024;

std::vector<Result> SampleRows() {
  std::vector<Result> rows = {SampleRow("gpipe", 1.2, 17.15 * kGiB),
                              SampleRow("1f1b", 1.25, 9.2 * kGiB),
                              SampleRow("interleaved-1f1b", 1.21, 10.5 * kGiB),
                              SampleRow("pipedream", 1.3, 15.75 * kGiB)};
  rows[2].set_chunks(2);
  rows[2].set_limit("transfers between rank 1 and rank 2");
  rows[3].set_num_batches(6);
  rows[3].set_weight_versions(4);
  rows[3].set_staleness_updates(3);
  for (Result& row : rows) row.add_warnings("the cluster profile is nominal");
  rows[3].add_warnings("staleness changes what is learned");
  return rows;
}

TEST(ViewsGoldenTest, Explanation) {
  ExpectGolden("results/golden/explain.txt",
               ExplanationTable(SampleExplanation()));
  ExpectGolden("results/golden/explain.json",
               ExplanationJson("explain", SampleExplanation()));
}

TEST(ViewsGoldenTest, CompareTable) {
  ExpectGolden("results/golden/compare.txt", CompareTable(SampleRows()));
}

TEST(ViewsGoldenTest, CompareTableOfGivenCosts) {
  std::vector<Result> rows = {GivenCostsResult(), GivenCostsResult()};
  rows[1].set_schedule("gpipe");
  ExpectGolden("results/golden/compare_given_costs.txt", CompareTable(rows));
}

TEST(ViewsGoldenTest, CompareTableOfDifferentShapes) {
  std::vector<Result> rows = {SampleRow("1f1b", 1.25, 9.2 * kGiB),
                              SampleRow("1f1b", 1.5, 9.2 * kGiB)};
  rows[1].set_name("gpt-1b on four nodes");
  rows[1].set_data_parallel(4);
  rows[1].set_global_batch_size(64);
  rows[1].set_samples_per_second(64 / 1.5);
  ExpectGolden("results/golden/compare_shapes.txt", CompareTable(rows));
}

TEST(ViewsTest, AReplayIsNotCalledASimulation) {
  Result result = SampleResult();
  result.set_method("replay");
  Replay* replay = result.mutable_replay();
  replay->set_device("4 partitions of a GPU");
  replay->set_serial(true);
  replay->add_losses(5.5);
  replay->add_losses(5.25);
  replay->set_formula("minibatch SGD");
  replay->set_weights_difference(2e-16);
  replay->set_change_difference(3e-15);
  SetTextLayout({.wide = true});
  const std::string table = ResultTable(result);
  SetTextLayout({});
  EXPECT_THAT(table, ::testing::Not(::testing::HasSubstr("simulation")));
  for (const char* part :
       {"replay, replayed on 4 partitions of a GPU, each pass by itself",
        "5.5 to 5.25, 2 steps",
        "compared with minibatch SGD: weights differ by 2e-16 (3e-15 relative "
        "to "
        "their change), losses "
        "by 0"}) {
    EXPECT_THAT(table, ::testing::HasSubstr(part));
  }
}

TEST(ViewsTest, TheRecipeIsShown) {
  Result result = SampleResult();
  EXPECT_THAT(ResultTable(result),
              ::testing::Not(::testing::HasSubstr("number format")));
  result.mutable_provenance()->set_scenario(
      "training {\n  precision: MIXED_FP16\n  recipe: \"mine\"\n}\n");
  EXPECT_THAT(ResultTable(result),
              ::testing::ContainsRegex("number format +mine .fp16 otherwise"));
}

TEST(ViewsGoldenTest, ResultTable) {
  ExpectGolden("results/golden/result.txt", ResultTable(SampleResult()));
}

TEST(ViewsGoldenTest, ResultTableOfGivenCosts) {
  ExpectGolden("results/golden/result_given_costs.txt",
               ResultTable(GivenCostsResult()));
}

TEST(ViewsGoldenTest, ResultJson) {
  ExpectGolden("results/golden/result.json",
               ResultJson("simulate", SampleResult()));
}

TEST(ViewsGoldenTest, CompareJson) {
  ExpectGolden("results/golden/compare.json",
               CompareJson("compare", SampleRows()));
}

TEST(ViewsGoldenTest, RanksCsv) {
  ExpectGolden("results/golden/ranks.csv", RanksCsv(SampleResult()));
}

TEST(ViewsGoldenTest, CompareCsv) {
  std::vector<Result> rows = SampleRows();
  rows.push_back(GivenCostsResult());
  rows[0].set_limit("a, \"quoted\" limit");
  ExpectGolden("results/golden/compare.csv", CompareCsv(rows));
}

TEST(CompareTableTest, TheFastestThatFitsIsNotTheFastestOfAll) {
  const std::string table = CompareTable(SampleRows());
  EXPECT_THAT(table, HasSubstr("\nfastest that fits: interleaved-1f1b v=2, "
                               "1.21 s (908 ms to 1.51 s) per step\n"
                               "limit: transfers between"));
  EXPECT_THAT(table, HasSubstr("\nthe fastest does not fit: gpipe, 1.20 s "));
  EXPECT_THAT(table, HasSubstr("gpipe: 1.40 GiB over the limit\n"));
}

TEST(CompareTableTest, SaysThatNothingFitsAndWhatIsNearest) {
  const std::vector<Result> rows = {SampleRow("gpipe", 1, 18 * kGiB),
                                    SampleRow("1f1b", 2, 16 * kGiB)};
  EXPECT_THAT(CompareTable(rows),
              HasSubstr("none fits in memory; closest: 1f1b, 256 MiB over "
                        "the limit\n"));
}

TEST(CompareTableTest, WithoutADeviceEverythingFits) {
  Result result = GivenCostsResult();
  result.set_fits_memory(false);  // meaningless without a capacity
  EXPECT_TRUE(FitsMemory(result));
  EXPECT_THAT(CompareTable({&result, 1}),
              HasSubstr("\nfastest: 1f1b, 141 s per step\n"));
}

TEST(CompareTableTest, AnEmptyComparisonSaysSo) {
  EXPECT_EQ(CompareTable({}), "no results\n");
}

TEST(CompareTest, ALargerBatchWinsBySamplesPerSecond) {
  std::vector<Result> rows = {SampleRow("1f1b", 1, 1), SampleRow("1f1b", 2, 1)};
  rows[1].set_samples_per_second(rows[0].samples_per_second() * 1.5);
  EXPECT_EQ(FindFastest(rows).of_all, 1);
  rows[1].clear_samples_per_second();
  EXPECT_EQ(FindFastest(rows).of_all, 0);
}

TEST(CompareTest, InferenceIsNotMeasuredAgainstTraining) {
  std::vector<Result> rows = {SampleRow("edgepipe", 1, 18 * kGiB),
                              SampleRow("1f1b", 3, 1),
                              SampleRow("gpipe", 2, 1)};
  rows[0].set_forward_only(true);
  rows[0].clear_samples_per_second();
  EXPECT_EQ(FindFastest(rows).of_all, 2);
  EXPECT_EQ(FindFastest(rows).that_fits, 2);
  EXPECT_THAT(CompareTable(rows),
              AllOf(HasSubstr("\nfastest that fits: gpipe, "),
                    HasSubstr("\nnot compared, inference only: edgepipe\n")));
  // A single inference result is compared with itself.
  EXPECT_EQ(FindFastest({rows.data(), 1}).of_all, 0);
  EXPECT_EQ(FindFastest({rows.data(), 1}).that_fits, std::nullopt);
  EXPECT_THAT(CompareTable({rows.data(), 1}), Not(HasSubstr("not compared")));
}

TEST(CompareTest, WarningsOfAllAreSaidOnceAndOthersNameTheirRow) {
  EXPECT_THAT(MergeWarnings(SampleRows()),
              ElementsAre("the cluster profile is nominal",
                          "pipedream: staleness changes what is learned"));
}

TEST(ViewsTest, TablesArePrintableAsciiWhateverTheNames) {
  Result result = SampleResult();
  result.set_name("mod\xc3\xa8le\x1b[2J\n");
  result.set_schedule("a\tb");
  result.set_limit("\x7f");
  result.mutable_ranks(0)->mutable_peak_memory_classes(0)->set_name("\xff\x01");
  for (const std::string& table :
       {ResultTable(result), CompareTable({&result, 1})}) {
    for (char c : table) {
      EXPECT_TRUE(c == '\n' || absl::ascii_isprint(c)) << int(c);
    }
    EXPECT_THAT(table, StartsWith("mod?le?[2J?: "));
  }
}

TEST(ViewsTest, LinesOfATableEndWithoutBlanks) {
  for (absl::string_view line :
       absl::StrSplit(CompareTable(SampleRows()), '\n')) {
    EXPECT_FALSE(absl::EndsWith(line, " ")) << line;
  }
}

TEST(ViewsTest, ManyRanksAreCutAndCounted) {
  const std::string table = ResultTable(GivenCostsResult());
  EXPECT_THAT(table, HasSubstr("\n... 24 more\n"));
  EXPECT_THAT(table, HasSubstr("\n15  "));
  EXPECT_THAT(table, Not(HasSubstr("\n16  ")));
}

TEST(JsonTest, QuantitiesAreNumbersAndTheTimelineIsLeftOut) {
  Result result = SampleResult();
  result.mutable_timeline()->MergeFrom(PipelineTimeline(4, 2).timeline());
  const auto json = nlohmann::json::parse(ResultJson("simulate", result));
  EXPECT_EQ(json["tool"], "weir");
  EXPECT_EQ(json["version"], "0.1.0");
  EXPECT_EQ(json["command"], "simulate");
  EXPECT_EQ(json["config"], result.provenance().scenario());
  EXPECT_EQ(json["warnings"].size(), 1u);
  EXPECT_FALSE(json["result"].contains("timeline"));
  EXPECT_EQ(json["result"]["batch_seconds"].get<double>(), 1.25);
  EXPECT_EQ(json["result"]["staleness_updates"], 0);
  const auto& rank = json["result"]["ranks"][5];
  for (const auto& [name, value] : rank.items()) {
    if (name != "peak_memory_classes") {
      EXPECT_TRUE(value.is_number()) << name;
    }
  }
  EXPECT_EQ(rank["peak_memory_classes"][0]["bytes"].get<double>(), 2 * kGiB);
}

TEST(JsonTest, NumbersKeepAllTheirDigits) {
  Result result = SampleResult();
  result.set_batch_seconds(1.0 / 3);
  result.set_peak_memory_bytes(12345678901234.5);
  const auto json = nlohmann::json::parse(ResultJson("simulate", result));
  EXPECT_EQ(json["result"]["batch_seconds"].get<double>(), 1.0 / 3);
  EXPECT_EQ(json["result"]["peak_memory_bytes"].get<double>(),
            12345678901234.5);
}

TEST(JsonTest, AbsentQuantitiesAreAbsent) {
  const auto json =
      nlohmann::json::parse(ResultJson("simulate", GivenCostsResult()));
  EXPECT_FALSE(json["result"].contains("samples_per_second"));
  EXPECT_FALSE(json["result"].contains("memory_capacity_bytes"));
}

TEST(JsonTest, NoNanAndNoInfinityGetsThrough) {
  Result result = SampleResult();
  result.set_idle_ratio(std::nan(""));
  result.set_samples_per_second(std::numeric_limits<double>::infinity());
  result.mutable_ranks(3)->set_idle_seconds(
      -std::numeric_limits<double>::infinity());
  result.set_limit("NaN");  // text may contain it
  const std::string text = CompareJson("compare", {&result, 1});
  const auto json = nlohmann::json::parse(text);
  EXPECT_TRUE(json["results"][0]["idle_ratio"].is_null());
  EXPECT_TRUE(json["results"][0]["samples_per_second"].is_null());
  EXPECT_TRUE(json["results"][0]["ranks"][3]["idle_seconds"].is_null());
  EXPECT_EQ(json["results"][0]["limit"], "NaN");
  EXPECT_EQ(json["warnings"].size(), 4u);
  EXPECT_THAT(text, HasSubstr("1f1b: /ranks/3/idle_seconds is not a finite"));
}

TEST(JsonTest, TextThatIsNotUtf8StillGivesJson) {
  Result result = SampleResult();
  result.set_name("caf\xe9");
  result.mutable_provenance()->set_scenario("name: \"caf\xe9\"");
  const std::string text = ResultJson("simulate", result);
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["result"]["schedule"], "1f1b");
}

TEST(CsvTest, OneLineForEachRankAndAHeader) {
  const std::string csv = RanksCsv(SampleResult());
  EXPECT_THAT(csv, StartsWith("rank,replica,tensor_rank,gpu,busy_seconds,"));
  EXPECT_THAT(csv, HasSubstr(",weights_bytes,activations_bytes,reserved_"));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 17);
}

TEST(CompareTableTest, ColumnsCanBeChosen) {
  SetTextLayout({.width = 80, .columns = {"bubble", "tp-comm", "schedule"}});
  const std::string table = CompareTable(SampleRows());
  SetTextLayout({});
  EXPECT_THAT(table, HasSubstr("\nbubble  tp comm  schedule\n"
                               " 9.4 %    6.2 %  gpipe\n"));
}

TEST(CompareTableTest, WideHasEveryPartOfTheStep) {
  SetTextLayout({.width = 80, .wide = true});
  const std::string table = CompareTable(SampleRows());
  SetTextLayout({});
  for (const char* header : {"compute", "tp comm", "p2p", "dp comm",
                             "optimizer", "bubble", "tokens/s/GPU"}) {
    EXPECT_THAT(table, HasSubstr(header));
  }
  EXPECT_THAT(table, Not(HasSubstr("not shown")));
}

TEST(CompareTableTest, SaysWhySplitBackwardsExposeCollectives) {
  std::vector<Result> rows = {SampleRow("1f1b", 1, kGiB),
                              SampleRow("zb-h1", 1, kGiB)};
  EXPECT_THAT(CompareTable(rows), Not(HasSubstr("more tp comm")));
  rows[1].mutable_breakdown()->set_tensor_communication_seconds(0.125);
  EXPECT_THAT(CompareTable(rows),
              HasSubstr("\nmore tp comm: zb-h1 (62.5 ms more than 1f1b): "));
  std::swap(rows[0], rows[1]);
  rows[0].set_schedule("1f1b");
  rows[1].set_schedule("zb-h1");
  EXPECT_THAT(CompareTable(rows), Not(HasSubstr("more tp comm")));
}

TEST(CompareTableTest, FitsEightyColumns) {
  for (absl::string_view line :
       absl::StrSplit(CompareTable(SampleRows()), '\n')) {
    EXPECT_LE(line.size(), 80u) << line;
  }
}

TEST(JsonTest, PartsOfTheStepAddUp) {
  const auto json =
      nlohmann::json::parse(ResultJson("simulate", SampleResult()));
  double sum = 0;
  for (const auto& [name, seconds] : json["result"]["breakdown"].items()) {
    sum += seconds.get<double>();
  }
  EXPECT_DOUBLE_EQ(sum, json["result"]["batch_seconds"].get<double>());
  EXPECT_EQ(json["result"]["tokens_per_second_per_gpu"].get<double>(),
            json["result"]["tokens_per_second"].get<double>() / 16);
}

TEST(CsvTest, NamesHaveNoControlCharacters) {
  Result result = SampleResult();
  result.set_name("mod\xc3\xa8le\x1b[2J\n\xc2\x9b\x7f, \"x\"");
  const std::string csv = CompareCsv({&result, 1});
  EXPECT_THAT(csv, HasSubstr("\n\"mod\xc3\xa8le?[2J???, \"\"x\"\"\","));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 2);
}

TEST(CsvTest, NotFiniteNumbersAreEmptyFields) {
  Result result = SampleRow("1f1b", 1, 1);
  result.set_idle_ratio(std::nan(""));
  const std::string csv = CompareCsv({&result, 1});
  EXPECT_THAT(csv, Not(HasSubstr("nan")));
  EXPECT_THAT(csv, EndsWith("\n"));
}

TEST(TextTest, ShortestNumbersReadBackAsThemselves) {
  for (double number : {0.1, 1.0 / 3, 1e300, -2.5e-10, 17179869184.0}) {
    EXPECT_EQ(std::stod(ShortestNumber(number)), number);
  }
  EXPECT_EQ(ShortestNumber(0.1), "0.1");
}

TEST(TextTest, ShortRowsAndMissingCellsKeepTheirColumns) {
  EXPECT_EQ(PrintTable({{"a", "bb"}, {}, {{"ccc"}, {"d", "1"}}}),
            "a    bb\nccc\nd     1\n");
}

}  // namespace weir::results::views_test
