// SPDX-License-Identifier: Apache-2.0
// Computes errors by source from the rows of five small sets.
#include "tools/accuracy/source_errors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files.h"

namespace weir::source_errors_test {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kSets[] =
    R"(set,title,quantity,target,worst_target,measured,scenario,columns,fitted,source,device,program,part_of,not_fitted
steps,"Steps, one",step_seconds,,,s.csv,s,,yes,Paper,A100,Old program,,
rates,Rates,tokens_per_second,,,r.csv,r,,,Paper,A100,New program,,
more,More,mfu,,,m.csv,m,,,Paper,A100,New program,,
memory,Memory,peak_memory_gib,,,s.csv,s,,,Paper,A100,Old program,,
times,Times,step_ms,,,t.csv,,,,Paper,stage times,Old program,,
sample,Sample,step_seconds,,,x.csv,s,,,Paper,A100,Old program,steps,
computed,Computed,step_seconds,,,c.csv,s,,,,,,,
absent,Absent,step_seconds,,,a.csv,s,,,Other,H100,Program,,
)";

constexpr char kHead[] =
    "line,row,quantity,measured,predicted,error,fits_memory,reason,low,high\n";

class SourceErrorsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern =
        absl::StrCat(testing::TempDir(), "weir-errors-XXXXXX");
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    Write("sets.csv", kSets);
    // 10 % too fast, inside; 20 % too slow, outside its asymmetric interval,
    // and predicted not to fit. A third run did not fit, as predicted.
    const std::string steps =
        absl::StrCat(kHead, "2,a,step_seconds,10,9,-0.1,true,,8,12\n",
                     "3,b,step_seconds,10,12,0.2,false,,11,18\n",
                     "2,a,peak_memory_gib,40,30,-0.25,true,,,\n",
                     "4,c,,,,,false,measured not to fit,,\n");
    Write("steps.csv", steps);
    Write("memory.csv", steps);
    Write("sample.csv", steps);
    Write("computed.csv", steps);
    // Twice the throughput is half the time.
    Write("rates.csv",
          absl::StrCat(kHead, "2,d|e,tokens_per_second,5,10,1,true,,4,20\n"));
    Write("more.csv", absl::StrCat(kHead, "2,f,mfu,0.5,0.4,-0.2,true,,,\n"));
    Write("times.csv", absl::StrCat(kHead, "2,g,step_ms,5,5,0,true,,,\n"));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(WriteFile(absl::StrCat(folder_, "/", name), text).ok());
  }

  std::vector<PublishedSet> Sets() {
    const auto sets =
        LoadPublishedSets(absl::StrCat(folder_, "/sets.csv"), folder_);
    EXPECT_TRUE(sets.ok()) << sets.status();
    return sets.value_or(std::vector<PublishedSet>());
  }

  std::vector<SourceErrors> Errors() {
    const auto errors = ErrorsBySource(Sets(), folder_);
    EXPECT_TRUE(errors.ok()) << errors.status();
    return errors.value_or(std::vector<SourceErrors>());
  }

  std::string folder_;
};

TEST_F(SourceErrorsTest, PoolsTheSetsOfASourceAndDevice) {
  const std::vector<SourceErrors> errors = Errors();
  ASSERT_EQ(errors.size(), 3);
  const SourceErrors& time = errors[0];
  EXPECT_EQ(time.source, "Paper");
  EXPECT_EQ(time.device, "A100");
  EXPECT_EQ(time.kind, MeasuredKind::kStepTime);
  EXPECT_THAT(time.programs, ElementsAre("Old program", "New program"));
  EXPECT_TRUE(time.fitted);
  // -0.1, +0.2, 5 / 10 - 1 and 0.5 / 0.4 - 1.
  EXPECT_EQ(time.statistics.num_rows, 4);
  EXPECT_NEAR(time.statistics.mean_absolute, 1.05 / 4, 1e-12);
  EXPECT_NEAR(time.statistics.bias, -0.15 / 4, 1e-12);
  EXPECT_NEAR(time.statistics.worst, -0.5, 1e-12);
  EXPECT_EQ(time.worst_run, "rates line 2: d|e");
}

TEST_F(SourceErrorsTest, CountsIntervalsAndVerdicts) {
  const std::vector<SourceErrors> errors = Errors();
  ASSERT_EQ(errors.size(), 3);
  // One run has no interval; b is below its interval.
  EXPECT_EQ(errors[0].num_intervals, 3);
  EXPECT_EQ(errors[0].num_inside, 2);
  // b ran and is predicted not to fit; c did not fit, as predicted.
  EXPECT_EQ(errors[0].num_verdicts, 5);
  EXPECT_EQ(errors[0].num_right_verdicts, 4);
}

TEST_F(SourceErrorsTest, SeparatesMemoryAndGivenTimes) {
  const std::vector<SourceErrors> errors = Errors();
  ASSERT_EQ(errors.size(), 3);
  EXPECT_EQ(errors[1].device, "stage times");
  EXPECT_EQ(errors[1].statistics.num_rows, 1);
  EXPECT_EQ(errors[1].num_verdicts, 0);
  EXPECT_FALSE(errors[1].fitted);
  EXPECT_EQ(errors[2].kind, MeasuredKind::kWholeGpuMemory);
  EXPECT_NEAR(errors[2].statistics.bias, -0.25, 1e-12);
  EXPECT_EQ(errors[2].num_intervals, 0);
}

// A sample counts where the table that contains it is absent.
TEST_F(SourceErrorsTest, CountsASampleOnlyWithoutItsTable) {
  std::filesystem::remove(absl::StrCat(folder_, "/steps.csv"));
  const std::vector<SourceErrors> errors = Errors();
  ASSERT_EQ(errors.size(), 3);
  EXPECT_EQ(errors[0].statistics.num_rows, 4);
}

TEST_F(SourceErrorsTest, PrintsATable) {
  const std::string table = SourceErrorsTable(Errors());
  EXPECT_THAT(table,
              HasSubstr("| Paper | A100 | Old program, New program | step time "
                        "| 4 | 26.2 % | -3.8 % | -50.0 % (rates line 2: d\\|e) "
                        "| 67 % | 4 of 5 | yes |\n"));
  EXPECT_THAT(table,
              HasSubstr("| Paper | stage times | Old program | step time "
                        "| 1 | 0.0 % | +0.0 % | +0.0 % (times line 2: "
                        "g) | - | - | no |\n"));
}

TEST_F(SourceErrorsTest, RefusesAQuantityThatIsNeitherTimeNorMemory) {
  std::vector<PublishedSet> sets = Sets();
  ASSERT_FALSE(sets.empty());
  sets[0].quantity = "block_activation_gib";
  EXPECT_THAT(ErrorsBySource(sets, folder_).status().message(),
              HasSubstr("quantity is \"block_activation_gib\""));
}

TEST(KindOfQuantityTest, KnowsTheQuantitiesOfValidate) {
  for (const char* name :
       {"step_seconds", "step_ms", "tflops_per_gpu", "samples_per_second",
        "tokens_per_second_per_gpu", "mfu"}) {
    EXPECT_EQ(*KindOfQuantity(name), MeasuredKind::kStepTime) << name;
  }
  for (const char* name : {"peak_allocated_gib", "least_allocated_mib"}) {
    EXPECT_EQ(*KindOfQuantity(name), MeasuredKind::kAllocatedMemory) << name;
  }
  EXPECT_EQ(*KindOfQuantity("peak_memory_gb"), MeasuredKind::kWholeGpuMemory);
}

}  // namespace weir::source_errors_test
