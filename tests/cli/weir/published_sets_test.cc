// SPDX-License-Identifier: Apache-2.0
// Predicts the published runs of results/published/sets and compares the errors
// with results/accuracy/README.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/csv.h"
#include "base/files.h"
#include "tests/cli/weir/program.h"
#include "tools/accuracy/row_errors.h"

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
// relative to the root of the project.
RowErrors Predict(const std::string& measured, const std::string& scenario,
                  const std::string& quantity) {
  const ProgramRun run = RunWeirAfter(
      absl::StrCat("cd ", WEIR_SOURCE_DIR, " &&"),
      absl::StrCat("validate --quiet --format csv --measured ", kSets, measured,
                   scenario.empty() ? ""
                                    : absl::StrCat(" --scenario ", kSets,
                                                   scenario, ".textproto")));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  WriteInput("rows.csv", run.out);
  const auto rows = LoadRowErrors(TestFolder() + "/rows.csv", quantity);
  EXPECT_TRUE(rows.ok()) << rows.status();
  return rows.value_or(RowErrors());
}

// Sets with runs on hundreds of GPUs or more take too long for every test run.
constexpr const char* kLarge[] = {"vtrain_multi", "megatron_table1",
                                  "korthikanti_table5",
                                  "korthikanti_activations", "megatron_core"};

TEST(PublishedSetsTest, ErrorsAreThoseOfTheReadme) {
  const std::string path = absl::StrCat(kSets, "sets.csv");
  const auto text = ReadFile(path);
  ASSERT_TRUE(text.ok()) << text.status();
  const auto table = ReadCsv(path, *text);
  ASSERT_TRUE(table.ok()) << table.status();
  const auto readme = ReadmeRows();
  EXPECT_EQ(readme.size(), table->num_rows());
  int num_predicted = 0;
  for (int i = 0; i < table->num_rows(); ++i) {
    const auto field = [&](const char* name) {
      return table->Column(name)->Text(i);
    };
    const std::string measured = field("measured");
    if (measured.empty() || measured.rfind("DATA/", 0) == 0 ||
        std::count(std::begin(kLarge), std::end(kLarge), field("set")) > 0) {
      continue;
    }
    SCOPED_TRACE(field("set"));
    ASSERT_EQ(readme.count(field("set")), 1);
    const std::vector<std::string>& cells = readme.at(field("set"));
    ASSERT_EQ(cells.size(), 10);
    const RowErrors rows =
        Predict(measured, field("scenario"), field("quantity"));
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
  EXPECT_EQ(num_predicted, 10);
}

// Every sixth run of the published data set with the most rows.
TEST(PublishedSetsTest, NineOfTenStepsAreInsideTheirIntervals) {
  const RowErrors rows = Predict("vtrain_sample.csv", "vtrain", "step_ms");
  EXPECT_EQ(rows.lines.size(), 121);
  EXPECT_GE(PartInside(rows, rows), 0.85);
  EXPECT_LE(PartInside(rows, rows), 0.95);
}

}  // namespace weir::cli::published_sets_test
