// SPDX-License-Identifier: Apache-2.0
#include "results/compare/measured_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/values.h"

namespace weir::results::measured_run_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

MeasuredTable Table(const std::string& text) {
  const auto table = ReadMeasuredTable("f.csv", text, {});
  EXPECT_TRUE(table.ok()) << table.status();
  return *table;
}

// Settings "pp" and "pipeline", of the same value, and "schedule".
class MeasuredRunTest : public testing::Test {
 protected:
  absl::Status Read(const std::string& text) {
    const MeasuredTable table = Table(text);
    return ReadRun(table, table.rows.at(0), settings_, &run_);
  }

  uint32_t pipeline_ = 0;
  std::string schedule_;
  MeasuredRun run_;
  const std::vector<RunSetting> settings_ = {
      {{"pp", "pipeline"},
       [this](const std::string& text) {
         const auto count = ParseCount(text);
         if (count.ok()) pipeline_ = *count;
         return count.status();
       }},
      {{"schedule"}, [this](const std::string& text) {
         schedule_ = text;
         return absl::OkStatus();
       }}};
};

TEST_F(MeasuredRunTest, ColumnsAreSettingsNamesAndMeasurements) {
  const absl::Status read = Read(
      "name,scenario,pipeline,schedule,flops_formula,step_seconds,note 1\n"
      "first,small,4,gpipe,model72,2.5,nothing\n");
  ASSERT_TRUE(read.ok()) << read;
  EXPECT_EQ(run_.line, 2);
  EXPECT_EQ(run_.name, "first");
  EXPECT_EQ(run_.scenario, "small");
  EXPECT_EQ(pipeline_, 4u);
  EXPECT_EQ(schedule_, "gpipe");
  EXPECT_EQ(run_.formula, FlopsFormula::kModel72);
  ASSERT_THAT(run_.numbers, SizeIs(1));
  EXPECT_EQ(run_.numbers[0].quantity, FindQuantity("step_seconds"));
  EXPECT_EQ(run_.numbers[0].value, 2.5);
  EXPECT_FALSE(run_.out_of_memory);
}

TEST_F(MeasuredRunTest, ARunMayBeMeasuredNotToFit) {
  ASSERT_TRUE(Read("step_seconds\noom\n").ok());
  EXPECT_TRUE(run_.out_of_memory);
  EXPECT_THAT(run_.numbers, IsEmpty());
}

TEST_F(MeasuredRunTest, AllProblemsOfARowAreReported) {
  const absl::Status read =
      Read("name,pp,pipeline,step_seconds\nodd,two,2,fast\n");
  EXPECT_EQ(read.code(), absl::StatusCode::kInvalidArgument);
  const std::string message(read.message());
  EXPECT_THAT(message, HasSubstr("f.csv:2: pp is two, expected"));
  EXPECT_THAT(message,
              HasSubstr("f.csv:2: pipeline has the same meaning as pp"));
  EXPECT_THAT(message, HasSubstr("f.csv:2: step_seconds is fast, expected"));
  EXPECT_EQ(run_.name, "odd");
}

TEST_F(MeasuredRunTest, UnknownColumnsAreReportedTogether) {
  EXPECT_TRUE(
      CheckColumns(Table("pp,note,step_seconds\n1,x,1\n"), settings_).ok());
  const absl::Status checked =
      CheckColumns(Table("schedul,weather,step_seconds\na,b,1\n"), settings_);
  EXPECT_EQ(checked.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(checked.message()),
              HasSubstr("f.csv: column schedul is unknown; did you "
                        "mean schedule?"));
  EXPECT_THAT(std::string(checked.message()), HasSubstr("column weather"));
  EXPECT_THAT(std::string(CheckColumns(Table("pp\n1\n"), settings_).message()),
              HasSubstr("has no measured column"));
}

TEST(SettingsOfFieldsTest, FieldsOfAMessageAreColumns) {
  Result result;
  int num_calls = 0;
  const auto settings = SettingsOfFields(*Result::descriptor(), [&] {
    ++num_calls;
    return &result;
  });
  EXPECT_EQ(settings.size(), Result::descriptor()->field_count());
  EXPECT_EQ(num_calls, 0);
  const auto set = [&](const std::string& column, const std::string& text) {
    for (const RunSetting& setting : settings) {
      if (setting.columns == std::vector<std::string>{column}) {
        return setting.set(text);
      }
    }
    return absl::NotFoundError(column);
  };
  EXPECT_TRUE(set("batch_seconds", "1.5").ok());
  EXPECT_TRUE(set("fits_memory", "TRUE").ok());
  EXPECT_TRUE(set("tensor_parallel", "2").ok());
  EXPECT_EQ(result.batch_seconds(), 1.5);
  EXPECT_TRUE(result.fits_memory());
  EXPECT_EQ(result.tensor_parallel(), 2u);
  EXPECT_THAT(std::string(set("tensor_parallel", "x").message()),
              HasSubstr("is x, expected a whole number"));
  EXPECT_THAT(std::string(set("ranks", "1").message()),
              HasSubstr("cannot be set by a column"));
}

Result Simulated() {
  Result result;
  result.set_batch_seconds(3);
  result.set_batch_seconds_low(2);
  result.set_batch_seconds_high(5);
  result.set_samples_per_second(8);
  result.set_global_batch_size(24);
  result.set_fits_memory(true);
  return result;
}

MeasuredRun Measured(const std::string& quantity, double value) {
  MeasuredRun run;
  run.line = 7;
  run.name = "run";
  run.numbers = {{FindQuantity(quantity), value}};
  return run;
}

TEST(CompareRunTest, PredictionsHaveTheUnitAndTheIntervalOfTheQuantity) {
  Accuracy accuracy;
  CompareRun(Measured("step_ms", 2000), Simulated(), {}, &accuracy);
  CompareRun(Measured("samples_per_second", 8), Simulated(), {}, &accuracy);
  ASSERT_THAT(accuracy.numbers, SizeIs(2));
  const ComparedNumber& time = accuracy.numbers[0];
  EXPECT_EQ(time.line, 7);
  EXPECT_EQ(time.row, "run");
  EXPECT_EQ(time.quantity, "step_ms");
  EXPECT_DOUBLE_EQ(time.predicted, 3000);
  EXPECT_DOUBLE_EQ(time.low, 2000);
  EXPECT_DOUBLE_EQ(time.high, 5000);
  EXPECT_TRUE(time.inside());
  // The throughput is lowest in the longest time.
  const ComparedNumber& throughput = accuracy.numbers[1];
  EXPECT_DOUBLE_EQ(throughput.predicted, 8);
  EXPECT_LT(throughput.low, 8);
  EXPECT_GT(throughput.high, 8);
}

TEST(CompareRunTest, RunsWithoutAComparisonHaveReasons) {
  Accuracy accuracy;
  const MeasuredRun run = Measured("step_seconds", 1);
  CompareRun(run, absl::InvalidArgumentError("one\ntwo"), {}, &accuracy);
  CompareRun(run, absl::CancelledError("not reached"), {}, &accuracy);
  MeasuredRun empty;
  CompareRun(empty, Simulated(), {}, &accuracy);
  EXPECT_THAT(accuracy.numbers, IsEmpty());
  EXPECT_EQ(accuracy.num_not_reached, 1);
  ASSERT_THAT(accuracy.skipped, SizeIs(2));
  EXPECT_EQ(accuracy.skipped[0].reason, "one; two");
  EXPECT_EQ(accuracy.skipped[1].reason, "the row has no measured value");
}

TEST(CompareRunTest, RunsThatDidNotFitAreCounted) {
  Accuracy accuracy;
  MeasuredRun run;
  run.out_of_memory = true;
  CompareRun(run, Simulated(), {}, &accuracy);
  ASSERT_THAT(accuracy.out_of_memory, SizeIs(1));
  EXPECT_TRUE(accuracy.out_of_memory[0].predicted_to_fit);
  EXPECT_THAT(accuracy.skipped, IsEmpty());
}

}  // namespace weir::results::measured_run_test
