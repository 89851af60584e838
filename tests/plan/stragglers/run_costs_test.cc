// SPDX-License-Identifier: Apache-2.0
// Checks costs of recorded runs.
#include "plan/stragglers/run_costs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "results/import/import_trace.h"
#include "tests/results/import/sample_trace.h"

namespace weir::plan::run_costs_test {
namespace {

using results::RecordedKind;
using results::RecordedOperation;
using results::SampleShape;
using testing::HasSubstr;

absl::StatusOr<results::RecordedRun> RunOf(const SampleShape& shape) {
  return results::ImportTraceText(
      "sample", results::SampleCsv(results::SampleOperations(shape)));
}

TEST(RunCostsTest, CostsAreMediansOfEachStage) {
  SampleShape shape;
  shape.num_ranks = 3;
  shape.num_microbatches = 4;
  // Stage 1 is longer; one pass of many is a straggler.
  shape.factor = [](const RecordedOperation& o) {
    if (o.rank == 2 && o.microbatch == 3 && o.step == 20) return 10.0;
    return o.rank == 1 ? 1.5 : 1.0;
  };
  const auto run = RunOf(shape);
  ASSERT_TRUE(run.ok()) << run.status();
  const auto costs = CostsOfRun(*run);
  ASSERT_TRUE(costs.ok()) << costs.status();
  ASSERT_EQ(costs->costs.stages_size(), 3);
  for (int stage = 0; stage < 3; ++stage) {
    const double factor = stage == 1 ? 1.5 : 1;
    EXPECT_NEAR(costs->costs.stages(stage).forward_seconds(), factor, 1e-9);
    EXPECT_NEAR(costs->costs.stages(stage).backward_seconds(), 2 * factor,
                1e-9);
  }
  EXPECT_NEAR(costs->costs.hop_seconds(), 0.25, 1e-9);
  EXPECT_NEAR(costs->deviation, 0, 1e-9);
}

// Factors e^-0.1, 1 and e^0.1 in turn.
TEST(RunCostsTest, TheDeviationIsThatOfTheLogarithm) {
  SampleShape shape;
  shape.num_microbatches = 30;
  shape.factor = [](const RecordedOperation& o) {
    return std::exp(0.1 * (o.microbatch % 3 - 1));
  };
  const auto run = RunOf(shape);
  ASSERT_TRUE(run.ok()) << run.status();
  const auto costs = CostsOfRun(*run);
  ASSERT_TRUE(costs.ok()) << costs.status();
  EXPECT_NEAR(costs->deviation, 0.1, 1e-9);
}

TEST(RunCostsTest, EveryStageNeedsItsPasses) {
  auto operations = results::SampleOperations({});
  std::erase_if(operations, [](const RecordedOperation& o) {
    return o.kind != RecordedKind::kForward;
  });
  const auto run =
      results::ImportTraceText("sample", results::SampleCsv(operations));
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_THAT(
      std::string(CostsOfRun(*run).status().message()),
      HasSubstr("stage 0 has no backward pass, expected a forward and a "
                "backward of every stage"));
}

}  // namespace
}  // namespace weir::plan::run_costs_test
