// SPDX-License-Identifier: Apache-2.0
// Predicts the published runs of results/published/sets and compares the errors
// with results/accuracy/README.md.
#include "tools/accuracy/published_sets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/files.h"
#include "tests/cli/weir/program.h"
#include "tools/accuracy/row_errors.h"
#include "tools/accuracy/source_errors.h"

namespace weir::cli::published_sets_test {

constexpr char kSets[] = WEIR_SOURCE_DIR "/results/published/sets/";

// Returns the cells of the README's table by set; a set's name is in backquotes
// in its first cell.
std::map<std::string, std::vector<std::string>> ReadmeRows() {
  std::map<std::string, std::vector<std::string>> rows;
  const auto text = ReadFile(WEIR_SOURCE_DIR "/results/accuracy/README.md");
  EXPECT_TRUE(text.ok()) << text.status();
  for (const absl::string_view line : absl::StrSplit(text.value_or(""), '\n')) {
    const std::vector<std::string> name = absl::StrSplit(line, '`');
    if (line.substr(0, 2) != "| " || name.size() != 3) continue;
    rows[name[1]] = absl::StrSplit(line, " | ");
  }
  return rows;
}

// Runs "weir validate" on a committed set of sets.csv. Paths in scenarios are
// relative to the root of the project. Runs of two sets with the same table are
// predicted once.
RowErrors Predict(const PublishedSet& set, const std::string& where = "") {
  static std::map<std::string, std::string>* const outputs =
      new std::map<std::string, std::string>();
  std::string arguments = absl::StrCat(
      "validate --quiet --format csv --measured ", kSets, set.measured);
  for (const auto& [flag, file] : {std::pair{"scenario", set.scenario},
                                   std::pair{"columns", set.columns}}) {
    if (file.empty()) continue;
    absl::StrAppend(&arguments, " --", flag, " ", kSets, file, ".textproto");
  }
  if (!where.empty()) absl::StrAppend(&arguments, " --where ", where);
  std::string& output = (*outputs)[arguments];
  if (output.empty()) {
    const ProgramRun run = RunWeirIn(WEIR_SOURCE_DIR, arguments);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    output = run.out;
  }
  WriteInput("rows.csv", output);
  const auto rows = LoadRowErrors(TestFolder() + "/rows.csv", set.quantity);
  EXPECT_TRUE(rows.ok()) << rows.status();
  return rows.value_or(RowErrors());
}

// Sets with runs on hundreds of GPUs or with thousands of microbatches take too
// long for every test run. Of these, only the runs with these values are
// predicted.
const std::map<std::string, std::string>& SmallRuns() {
  static const auto* const runs = new std::map<std::string, std::string>({
      {"vtrain_multi", "nodes=8,mbs=8,tp=1"},
      {"megatron_table1", "nodes=8"},
      {"korthikanti_table5", "nodes=35,recompute=full"},
      {"korthikanti_activations", "nodes=35,recompute=full"},
      {"megatron_core", "nodes=6"},
      {"gpt2_megatron", "gbs=4"},
      {"gpt2_deepspeed", "gbs=1024,pp=8"},
      {"gpt2_deepspeed_memory", "gbs=1024,pp=16"},
      {"dgxc_gpt3_175b", "nodes=128,chunks=6"},
      {"megatron_table2_zero3", "nodes=48"},
      {"megatron_table2_ptd", "nodes=48"},
      {"nemo_launcher_175b", "nodes=64"},
      {"llama3_405b", "nodes=1024"},
      {"megatron_bridge_llama_fp8", "nodes=8"},
      {"bloom_fp16_more", "nodes=1"},
      {"dgxc_llama31_70b", "nodes=16"},
      {"dgxc_llama31_70b_fp8", "nodes=16"},
  });
  return *runs;
}

std::vector<PublishedSet> AllSets() {
  auto sets = LoadPublishedSets(absl::StrCat(kSets, "sets.csv"));
  EXPECT_TRUE(sets.ok()) << sets.status();
  return sets.value_or(std::vector<PublishedSet>());
}

// Returns true for sets of whole steps whose table is in the repository.
bool IsCommitted(const PublishedSet& set) {
  return !set.measured.empty() && set.measured.rfind("DATA/", 0) != 0;
}

TEST(PublishedSetsTest, ErrorsAreThoseOfTheReadme) {
  const auto readme = ReadmeRows();
  const std::vector<PublishedSet> sets = AllSets();
  EXPECT_EQ(readme.size(), sets.size());
  int num_predicted = 0;
  for (const PublishedSet& set : sets) {
    SCOPED_TRACE(set.name);
    EXPECT_EQ(readme.count(set.name), 1);
    if (!IsCommitted(set) || SmallRuns().count(set.name) > 0 ||
        readme.count(set.name) == 0) {
      continue;
    }
    const std::vector<std::string>& cells = readme.at(set.name);
    ASSERT_EQ(cells.size(), 10);
    const RowErrors rows = Predict(set);
    EXPECT_THAT(rows.skipped, testing::IsEmpty());
    const ErrorStatistics errors = rows.Statistics();
    const double inside = PartInside(rows, rows);
    EXPECT_EQ(cells[3], absl::StrCat(errors.num_rows));
    EXPECT_EQ(cells[4], absl::StrFormat("%.1f %%", 100 * errors.mean_absolute));
    EXPECT_EQ(cells[6], absl::StrFormat("%+.1f %%", 100 * errors.bias));
    EXPECT_EQ(cells[7], absl::StrFormat("%.1f %%", 100 * errors.percentile_90));
    EXPECT_EQ(cells[8],
              inside < 0 ? "-" : absl::StrFormat("%.1f %%", 100 * inside));
    ++num_predicted;
  }
  EXPECT_GE(num_predicted, 35);
}

TEST(PublishedSetsTest, SmallRunsOfLargeSetsArePredicted) {
  std::set<std::string> left;
  for (const auto& [name, where] : SmallRuns()) left.insert(name);
  for (const PublishedSet& set : AllSets()) {
    if (left.erase(set.name) == 0) continue;
    SCOPED_TRACE(set.name);
    const RowErrors rows = Predict(set, SmallRuns().at(set.name));
    EXPECT_THAT(rows.lines, testing::Not(testing::IsEmpty()));
    EXPECT_THAT(rows.skipped, testing::IsEmpty());
  }
  EXPECT_THAT(left, testing::IsEmpty());
}

// Whatever measures steps or memory counts in the table by source.
TEST(PublishedSetsTest, SetsOfMeasuredRunsNameSourceDeviceAndProgram) {
  const std::set<std::string> computed = {"korthikanti_activations",
                                          "zero_bubble_bubbles"};
  for (const PublishedSet& set : AllSets()) {
    SCOPED_TRACE(set.name);
    const bool counts = !set.measured.empty() && computed.count(set.name) == 0;
    for (const std::string& text : {set.source, set.device, set.program}) {
      EXPECT_EQ(!text.empty(), counts);
    }
    if (counts) {
      EXPECT_TRUE(KindOfQuantity(set.quantity).ok()) << set.quantity;
    }
  }
}

// Of sources that are left out, 80 to 97 % of the rows should be inside, for
// devices with at least three sources.
TEST(PublishedSetsTest, NineOfTenLeftOutStepsAreInsideTheirIntervals) {
  const auto text = ReadFile(WEIR_SOURCE_DIR "/results/accuracy/README.md");
  ASSERT_TRUE(text.ok()) << text.status();
  const std::string page = text->substr(text->find("| device | sources |"));
  int num_devices = 0;
  for (absl::string_view line :
       absl::StrSplit(page.substr(0, page.find("\n\n")), '\n')) {
    std::vector<std::string> cells = absl::StrSplit(line, '|');
    int num_sources = 0, inside = 0;
    if (cells.size() < 8 || !absl::SimpleAtoi(cells[2], &num_sources) ||
        num_sources < 3) {
      continue;
    }
    ASSERT_TRUE(
        absl::SimpleAtoi(cells[6].substr(0, cells[6].find('%')), &inside))
        << line;
    EXPECT_GE(inside, 80) << line;
    EXPECT_LE(inside, 97) << line;
    ++num_devices;
  }
  EXPECT_GE(num_devices, 2);
}

// Every sixth run of the published data set with the most rows, with the
// residual for sources that the fit has not seen, which is wider.
TEST(PublishedSetsTest, NineOfTenStepsAreInsideTheirIntervals) {
  PublishedSet set;
  set.measured = "vtrain_sample.csv";
  set.scenario = "vtrain";
  set.quantity = "step_ms";
  const RowErrors rows = Predict(set);
  EXPECT_EQ(rows.lines.size(), 121);
  EXPECT_GE(PartInside(rows, rows), 0.9);
}

}  // namespace weir::cli::published_sets_test
