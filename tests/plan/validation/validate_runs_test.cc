// SPDX-License-Identifier: Apache-2.0
// GPipe and 1F1B with m microbatches on p ranks take (m + p - 1)(f + b).
#include "plan/validation/validate_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/interrupt.h"
#include "base/textproto.h"
#include "base/values.h"
#include "scenarios/describe_scenario.h"

namespace weir::plan::validate_runs_test {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

results::MeasuredTable Table(const std::string& text) {
  const auto table = results::ReadMeasuredTable("f.csv", text, {});
  EXPECT_TRUE(table.ok()) << table.status();
  return *table;
}

Scenario Parsed(const std::string& text) {
  Scenario scenario;
  const absl::Status parsed = ParseTextProto("test", text, &scenario);
  EXPECT_TRUE(parsed.ok()) << parsed;
  return scenario;
}

// The base "long" has 30 microbatches, all others 8. The columns "pp" and
// "schedule" change it.
RowScenario NewRow() {
  const auto changes = std::make_shared<Scenario>();
  RowScenario row;
  row.settings = {{{"pp"},
                   [changes](const std::string& text) {
                     const auto ranks = ParseCount(text);
                     if (!ranks.ok()) return ranks.status();
                     changes->mutable_parallelism()->set_pipeline(*ranks);
                     return absl::OkStatus();
                   }},
                  {{"schedule"}, [changes](const std::string& text) {
                     changes->set_schedule(text);
                     return absl::OkStatus();
                   }}};
  row.describe = [changes] { return scenarios::DescribeSizes(*changes); };
  row.resolve = [changes](const std::string& base) {
    Scenario scenario = Parsed(R"(
        parallelism { pipeline: 4 } schedule: "gpipe" num_microbatches: 8
        costs { stages { forward_seconds: 1 backward_seconds: 2 } })");
    if (base == "long") scenario.set_num_microbatches(30);
    scenario.MergeFrom(*changes);
    return scenarios::ResolveScenario("test", scenario);
  };
  return row;
}

results::Accuracy Validated(const std::string& text,
                            const ValidationOptions& options = {}) {
  const auto accuracy = ValidateRuns(Table(text), NewRow, options);
  EXPECT_TRUE(accuracy.ok()) << accuracy.status();
  return *accuracy;
}

TEST(ValidateRunsTest, ComparesEveryRowInTheOrderOfTheTable) {
  const std::string table =
      "name,scenario,schedule,pp,step_seconds\n"
      "slow,long,gpipe,4,90\n"
      ",,,3,30\n"
      "fast,,1f1b,2,30\n";
  for (const int num_processes : {1, 3}) {
    ValidationOptions options;
    options.num_processes = num_processes;
    const results::Accuracy accuracy = Validated(table, options);
    EXPECT_EQ(accuracy.label, "f.csv");
    EXPECT_EQ(accuracy.num_runs, 3);
    EXPECT_THAT(accuracy.skipped, IsEmpty());
    std::vector<std::pair<std::string, double>> predicted;
    for (const results::ComparedNumber& number : accuracy.numbers) {
      predicted.emplace_back(number.row, number.predicted);
    }
    // A row without a name is named by what it sets.
    EXPECT_THAT(predicted, ElementsAre(Pair("slow", 99.0), Pair("pp 3", 30.0),
                                       Pair("fast", 27.0)));
    EXPECT_NEAR(accuracy.numbers[0].error(), 0.1, 1e-12);
    EXPECT_EQ(accuracy.numbers[2].line, 4);
  }
}

TEST(ValidateRunsTest, RowsThatCannotBeSimulatedAreSkippedWithReasons) {
  const results::Accuracy accuracy = Validated(
      "schedule,pp,step_seconds\n"
      "gpipe,two,1\n"
      "gpipf,4,1\n"
      "gpipe,4,fast\n"
      "gpipe,4,11\n");
  EXPECT_EQ(accuracy.num_runs, 4);
  ASSERT_THAT(accuracy.numbers, SizeIs(1));
  EXPECT_EQ(accuracy.numbers[0].line, 5);
  ASSERT_THAT(accuracy.skipped, SizeIs(3));
  EXPECT_EQ(accuracy.skipped[0].line, 2);
  EXPECT_THAT(accuracy.skipped[0].reason,
              HasSubstr("f.csv:2: pp is two, expected"));
  EXPECT_EQ(accuracy.skipped[1].line, 3);
  EXPECT_THAT(accuracy.skipped[1].reason,
              AllOf(HasSubstr("gpipf"), HasSubstr("did you mean gpipe?")));
  EXPECT_EQ(accuracy.skipped[2].line, 4);
  EXPECT_THAT(accuracy.skipped[2].reason,
              HasSubstr("f.csv:4: step_seconds is fast, expected"));
}

TEST(ValidateRunsTest, FormulasOfFlopsGetTheSizesOfTheModel) {
  const auto new_row = [] {
    RowScenario row;
    row.describe = [] { return "row"; };
    row.resolve = [](const std::string&) {
      return scenarios::ResolveScenario("test", Parsed(R"(
          model: "gpt2" cluster: "dgx-a100" num_nodes: 1
          parallelism { pipeline: 2 data: 1 } schedule: "1f1b"
          batch { microbatch_size: 1 global_batch_size: 4 })"));
    };
    return row;
  };
  const auto accuracy = ValidateRuns(
      Table("step_seconds,tflops_per_gpu,flops_formula\n1,60,model72\n"),
      new_row);
  ASSERT_TRUE(accuracy.ok()) << accuracy.status();
  EXPECT_THAT(accuracy->skipped, IsEmpty());
  ASSERT_THAT(accuracy->numbers, SizeIs(2));
  // 72 B s l h^2 (1 + s/6h + V/12lh) FLOP, for a global batch of B.
  const double batch = 4, s = 1024, l = 12, h = 768, v = 50257;
  const double flops =
      72 * batch * s * l * h * h * (1 + s / (6 * h) + v / (12 * l * h));
  const double seconds = accuracy->numbers[0].predicted;
  EXPECT_NEAR(accuracy->numbers[1].predicted, flops / seconds / 2 / 1e12,
              1e-9 * flops / seconds / 2 / 1e12);
}

TEST(ValidateRunsTest, ReportsProgressOfRowsThatHaveAScenario) {
  std::vector<std::pair<int, int>> reports;
  ValidationOptions options;
  options.num_processes = 1;
  options.progress = [&](int num_done, int num_runs) {
    reports.emplace_back(num_done, num_runs);
  };
  Validated("schedule,step_seconds\ngpipe,33\ngpipf,1\n1f1b,33\n", options);
  ASSERT_FALSE(reports.empty());
  EXPECT_EQ(reports.back(), std::pair(2, 2));
}

TEST(ValidateRunsTest, AnInterruptLeavesTheOtherRowsUnreached) {
  ValidationOptions options;
  options.progress = [](int, int) {
    if (!Interrupted()) raise(SIGINT);
  };
  NoteInterrupt();
  const results::Accuracy accuracy =
      Validated("schedule,step_seconds\ngpipe,33\ngpipf,1\n1f1b,33\n", options);
  ForgetInterrupt();
  ExitOnInterrupt();
  EXPECT_EQ(accuracy.num_runs, 3);
  EXPECT_GE(accuracy.num_not_reached, 1);
  EXPECT_EQ(accuracy.num_not_reached + std::ssize(accuracy.numbers), 2);
  EXPECT_THAT(accuracy.skipped, SizeIs(1));  // the row without a scenario
}

}  // namespace weir::plan::validate_runs_test
