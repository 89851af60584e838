// SPDX-License-Identifier: Apache-2.0
// Checks that every system trains as its paper specifies: losses and weights of
// a replay equal those of training without a pipeline.
//
// WEIR_REPLAY_TABLE=out/replay/cpu_training.csv writes the results to a
// table.
#include <gmock/gmock.h>

#include <cstdlib>

#include "absl/strings/str_format.h"
#include "base/csv.h"
#include "base/files.h"
#include "calibrate/execute/execute_schedule.h"
#include "calibrate/execute/host_device.h"
#include "calibrate/execute/sequential.h"
#include "tests/calibrate/execute/execution_cases.h"

namespace weir::calibrate::execution_formula_test {

constexpr double kMostDifference = 1e-12;

// Writes the table after all tests of the process.
class Table : public testing::Environment {
 public:
  static std::string& rows() {
    static auto& rows = *new std::string;
    return rows;
  }
  void TearDown() override {
    const char* path = std::getenv("WEIR_REPLAY_TABLE");
    if (path == nullptr) return;
    const absl::Status status = WriteFile(
        path,
        "system,shape,model,stages,optimizer,ranks,updates,weights_difference,"
        "losses_difference,formula\n" +
            rows());
    EXPECT_TRUE(status.ok()) << status;
  }
};
[[maybe_unused]] const auto* const table =
    testing::AddGlobalTestEnvironment(new Table);

void AddRow(const ExecutionCase& replay, const ExecutionPlan& plan,
            const TrainingDifference& difference, absl::string_view formula) {
  const schedules::Schedule& schedule = plan.schedule;
  const int updates =
      schedule.forward_only
          ? 0
          : plan.num_steps * (schedule.total_microbatches() /
                              schedule.microbatches_per_update(0));
  absl::StrAppend(
      &Table::rows(), CsvField(schedule.name), ",", CsvField(replay.shape), ",",
      replay.llama ? "llama" : "gpt", ",", replay.uneven ? "uneven" : "even",
      ",", NameOf(plan.optimizers[0]), ",",
      replay.concurrent ? "threads" : "serial", ",", updates, ",",
      absl::StrFormat("%.1e,%.1e", difference.weights, difference.losses), ",",
      CsvField(formula), "\n");
}

class EveryKindTest : public testing::TestWithParam<std::string> {};

TEST_P(EveryKindTest, TrainsAsThePaperSays) {
  const std::vector<ExecutionCase> cases = CasesOf(GetParam());
  ASSERT_FALSE(cases.empty());
  for (const ExecutionCase& replay : cases) {
    const ExecutionPlan plan = PlanOf(RequestOf(replay));
    const auto formula = TrainSequentially(plan);
    ASSERT_TRUE(formula.ok()) << formula.status();
    const auto device = MakeHostDevice(plan, {.concurrent = replay.concurrent});
    const auto record = ExecuteSchedule(plan, device.get());
    ASSERT_TRUE(record.ok()) << replay.shape << ": " << record.status();
    EXPECT_TRUE(CheckVersions(plan, *record).ok())
        << CheckVersions(plan, *record);
    const TrainingDifference difference = DifferenceOf(plan, *record, *formula);
    EXPECT_LE(difference.weights, kMostDifference)
        << replay.shape << ", stage " << difference.worst_stage;
    EXPECT_LE(difference.losses, kMostDifference) << replay.shape;
    AddRow(replay, plan, difference, formula->formula);
  }
}

TEST(ExecutionFormulaTest, EveryOptionOfEveryKindIsTrained) {
  const std::vector<std::string> names = ExecutionNames();
  for (const schedules::ScheduleKind& kind : schedules::AllScheduleKinds()) {
    for (const schedules::ScheduleOption& option : kind.options) {
      const std::string start = absl::StrCat(kind.name, ":");
      const std::string text = absl::StrCat(":", option.name, "=");
      EXPECT_TRUE(std::any_of(names.begin(), names.end(),
                              [&](const std::string& name) {
                                return absl::StartsWith(name, start) &&
                                       absl::StrContains(name, text);
                              }))
          << kind.name << text;
    }
  }
}

// Values and gradients are rounded at stage boundaries. AccEPT therefore trains
// differently from a single stage; the reference is a chain of stages that
// round.
TEST(ExecutionFormulaTest, CompressedTransfersAreRounded) {
  for (const int bits : {4, 8, 16}) {
    for (const bool llama : {false, true}) {
      ExecutionRequest request = TinyRequest(
          Generated("accept", {.num_ranks = 3, .num_microbatches = 4}), llama);
      request.num_steps = 20;
      ExecutionPlan plan = PlanOf(request);
      const auto exact = TrainSequentially(plan);
      plan.compressed_bits = bits;
      const auto formula = TrainSequentially(plan);
      ASSERT_TRUE(exact.ok() && formula.ok());
      const auto device = MakeHostDevice(plan, {});
      const auto record = ExecuteSchedule(plan, device.get());
      ASSERT_TRUE(record.ok()) << record.status();
      EXPECT_LE(DifferenceOf(plan, *record, *formula).weights, kMostDifference);
      EXPECT_LE(DifferenceOf(plan, *record, *formula).losses, kMostDifference);
      EXPECT_GE(DifferenceOf(plan, *record, *exact).weights, 1e-8) << bits;
    }
  }
}

std::string TestName(const testing::TestParamInfo<std::string>& info) {
  std::string name;
  for (const char c : info.param) name += std::isalnum(c) != 0 ? c : '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Replay, EveryKindTest,
                         testing::ValuesIn(ExecutionNames()), TestName);

}  // namespace weir::calibrate::execution_formula_test
