// SPDX-License-Identifier: Apache-2.0
// Training by the papers' formulas on a fake GPU: the differences that it
// detects and the memory that it needs.
#include <gmock/gmock.h>

#include "tests/calibrate/gpu/fake/fake_executions.h"

namespace weir::calibrate::fake_formula_test {

// Differences relative to the change by training. A correct replay differs by
// up to 0.008 with momentum and 0.044 with Adam (training_check.h).
constexpr double kOtherSystem = 0.5, kOtherDelay = 0.1,
                 kOtherDelayOfAdam = 0.05;

using FakeFormulaTest = FakeExecutionTest;

// Checks that the formula distinguishes delays and systems in 16 bits too. In
// the weights themselves, a wrong delay changes less than rounding may.
TEST_F(FakeFormulaTest, AnotherDelayIsCaught) {
  const schedules::ScheduleSpec spec = {3, 3, 1, 4};
  for (const Optimizer optimizer : {SGD_MOMENTUM, ADAM}) {
    const auto plan_of = [&](const std::string& name) {
      ExecutionPlan plan = HalfPlan(name, spec, true, optimizer);
      if (optimizer == ADAM) {
        for (StageOptimizer& of : plan.optimizers) of.learning_rate = 1e-3;
      }
      return plan;
    };
    const auto differ = [&](const std::string& replayed,
                            const std::string& trained) {
      const auto formula = Train(plan_of(trained));
      EXPECT_TRUE(formula.ok()) << formula.status();
      const ExecutionPlan plan = plan_of(replayed);
      return DifferenceOf(plan, Run(plan, 0), *formula);
    };
    EXPECT_EQ(differ("pipedream", "pipedream").change, 0);
    EXPECT_EQ(differ("2bw", "2bw").change, 0);
    EXPECT_GE(differ("pipedream", "2bw").change, kOtherSystem);
    EXPECT_GE(differ("2bw", "pipedream").change, kOtherSystem);
    const double late =
        differ("pipedream", "pipedream:vertical-sync=yes").change;
    const double none = differ("2bw", "pipemare:correction=none").change;
    const double least = optimizer == ADAM ? kOtherDelayOfAdam : kOtherDelay;
    EXPECT_GE(late, least);
    EXPECT_GE(none, least);
    printf("another delay: %.2g, %.2g of the change\n", late, none);
  }
}

// The memory that suffices for few batches suffices for many.
TEST_F(FakeFormulaTest, VersionsAreKeptNoLongerThanTheyAreRead) {
  for (const char* name : {"pipedream", "pipemare"}) {
    const auto plan_of = [&](int num_batches) {
      return HalfPlan(name, {3, 3, 1, num_batches}, true);
    };
    int64_t too_few = 0, enough = 1 << 17;
    while (enough - too_few > 1024) {
      const int64_t middle = (enough + too_few) / 2;
      const auto record = Train(plan_of(4), middle);
      (record.ok() ? enough : too_few) = middle;
      if (record.ok()) continue;
      EXPECT_EQ(record.status().code(), absl::StatusCode::kResourceExhausted);
      EXPECT_THAT(std::string(record.status().message()),
                  testing::HasSubstr("rank 0: allocating"));
    }
    EXPECT_GT(too_few, 0);
    const auto many = Train(plan_of(20), enough);
    EXPECT_TRUE(many.ok()) << name << ": " << many.status();
  }
}

}  // namespace weir::calibrate::fake_formula_test
