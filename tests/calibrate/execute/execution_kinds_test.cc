// SPDX-License-Identifier: Apache-2.0
// Trains every schedule that weir knows and checks that weights are read and
// updated according to its version table.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/calibrate/execute/executions.h"

namespace weir::calibrate::execution_kinds_test {

class ExecutionKindsTest : public testing::TestWithParam<NamedShape> {
 protected:
  static ExecutionPlan Plan() {
    ExecutionRequest request =
        TinyRequest(Generated(GetParam().name, GetParam().spec), true);
    if (request.schedule.flush) request.num_steps = 2;
    request.link = {1e-5, 1e9};
    return PlanOf(request);
  }
};

TEST_P(ExecutionKindsTest, ReadsAndUpdatesTheVersionsOfItsTable) {
  const ExecutionPlan plan = Plan();
  for (const bool threads : {true, false}) {
    const ExecutionRecord record = Executed(plan, threads);
    EXPECT_EQ(CheckVersions(plan, record), absl::OkStatus());
    for (const StepRecord& step : record.steps) {
      for (double loss : step.losses) EXPECT_TRUE(std::isfinite(loss));
    }
  }
}

TEST_P(ExecutionKindsTest, ThreadsAndOneAfterTheOtherTrainTheSame) {
  const ExecutionPlan plan = Plan();
  const ExecutionRecord threads = Executed(plan, true);
  const ExecutionRecord serial = Executed(plan, false);
  EXPECT_EQ(threads.weights, serial.weights);
  ASSERT_EQ(threads.steps.size(), serial.steps.size());
  for (size_t i = 0; i < serial.steps.size(); ++i) {
    EXPECT_EQ(threads.steps[i].losses, serial.steps[i].losses);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, ExecutionKindsTest,
                         testing::ValuesIn(AllShapes()), [](const auto& info) {
                           return TestName(info.param.name);
                         });

}  // namespace weir::calibrate::execution_kinds_test
