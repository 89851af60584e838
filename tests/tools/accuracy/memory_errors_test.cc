// SPDX-License-Identifier: Apache-2.0
#include "tools/accuracy/memory_errors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files.h"

namespace weir::memory_errors_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

PublishedSet SetOf(const std::string& name, const std::string& quantity) {
  PublishedSet set;
  set.name = name;
  set.quantity = quantity;
  set.measured = "runs.csv";
  set.scenario = "s";
  set.source = "Paper";
  set.device = "A100";
  set.program = "Program";
  return set;
}

constexpr char kHeader[] =
    "line,row,quantity,measured,predicted,error,fits_memory,reason,low,high,"
    "memory_use\n";

// Writes the rows of sets into a folder of the running test.
std::string Folder(
    const std::vector<std::pair<std::string, std::string>>& files) {
  std::string folder =
      ::testing::TempDir() +
      ::testing::UnitTest::GetInstance()->current_test_info()->name();
  std::filesystem::create_directories(folder);
  for (const auto& [name, rows] : files) {
    EXPECT_TRUE(
        WriteFile(absl::StrCat(folder, "/", name, ".csv"), kHeader + rows)
            .ok());
  }
  return folder;
}

TEST(MemoryErrorsTest, NineOfTenRowsOfSourcesWithEqualWeights) {
  MemorySource many, one;
  many.needed = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1};
  EXPECT_DOUBLE_EQ(WidthFactor({many}), 0.9);
  one.needed = {3};
  // Without this row, half of the weight is missing.
  EXPECT_DOUBLE_EQ(WidthFactor({many, one}), 3);
  one.fitted = false;
  EXPECT_DOUBLE_EQ(WidthFactor({many, one}), 0.9);
  EXPECT_DOUBLE_EQ(WidthFactor({}), 1);
}

// The width that a row needs is that of its side of the interval.
TEST(MemoryErrorsTest, WidthsOfEachSide) {
  const std::string folder =
      Folder({{"memory",
               "2,a,peak_memory_gib,50,40,-0.2,true,,36,45,0.5\n"
               "3,b,peak_memory_gib,38,40,0.05,true,,36,45,0.5\n"}});
  const auto sources =
      MemorySources({SetOf("memory", "peak_memory_gib")}, folder);
  ASSERT_TRUE(sources.ok()) << sources.status();
  ASSERT_EQ(sources->size(), 1);
  EXPECT_THAT((*sources)[0].needed, ElementsAre(2, 0.5));
  EXPECT_EQ((*sources)[0].kind, "memory of the GPU");
}

// A run of two sets counts once; a margin of at most 5 % is not clear.
TEST(MemoryErrorsTest, VerdictsCountRunsOnce) {
  const std::string folder =
      Folder({{"time",
               "2,a,step_seconds,1,1,0,true,,,,0.5\n"
               "3,b,step_seconds,1,1,0,false,,,,1.2\n"},
              {"memory",
               "2,a,peak_memory_gib,40,40,0,true,,36,45,0.5\n"
               "4,c,,,,,true,measured not to fit,,,0.96\n"}});
  const auto verdicts = VerdictsBySource(
      {SetOf("time", "step_seconds"), SetOf("memory", "peak_memory_gib")},
      folder);
  ASSERT_TRUE(verdicts.ok()) << verdicts.status();
  ASSERT_EQ(verdicts->size(), 1);
  const SourceVerdicts& paper = (*verdicts)[0];
  EXPECT_EQ(paper.num_runs, 3);
  EXPECT_EQ(paper.num_right, 1);
  EXPECT_EQ(paper.num_clear, 2);
  EXPECT_EQ(paper.num_clear_right, 1);
  EXPECT_THAT(paper.clear_wrong, ElementsAre("time line 3"));
  EXPECT_THAT(MemoryTables({}, *verdicts), HasSubstr("| 2 | 1 (50.0 %) |"));
}

}  // namespace weir::memory_errors_test
