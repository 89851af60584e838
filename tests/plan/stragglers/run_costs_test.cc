// SPDX-License-Identifier: Apache-2.0
// Checks costs of recorded runs.
#include "plan/stragglers/run_costs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
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
  EXPECT_NEAR(costs->deviation.value(), 0, 1e-9);
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
  EXPECT_NEAR(costs->deviation.value(), 0.1, 1e-9);
}

// Attention, 4 s, and the MLP, 3 s, are parts of one pass.
TEST(RunCostsTest, PartsOfAPassAreAdded) {
  results::RecordedRun run;
  run.num_replicas = run.num_ranks = run.num_stages = 1;
  run.in_parts = true;
  const auto add = [&](RecordedKind kind, int microbatch, double start,
                       double seconds) {
    RecordedOperation o;
    o.kind = kind;
    o.stage = 0;
    o.microbatch = microbatch;
    o.start_seconds = start;
    o.end_seconds = start + seconds;
    run.operations.push_back(o);
  };
  add(RecordedKind::kForward, 0, 0, 4);
  add(RecordedKind::kDispatch, 0, 4, 9);
  add(RecordedKind::kForward, 0, 5, 3);
  add(RecordedKind::kBackward, 1, 8, 6);
  add(RecordedKind::kBackward, 1, 20, 5);
  auto costs = CostsOfRun(run);
  ASSERT_TRUE(costs.ok()) << costs.status();
  EXPECT_EQ(costs->costs.stages(0).forward_seconds(), 7);
  EXPECT_EQ(costs->costs.stages(0).backward_seconds(), 11);
  // One pass of each kind has no deviation.
  EXPECT_FALSE(costs->deviation.has_value());
  EXPECT_THAT(costs->left_out, HasSubstr("dispatch and combine are left out"));

  // The median of an even number of passes is the mean of the middle two.
  add(RecordedKind::kForward, 1, 30, 8);
  costs = CostsOfRun(run);
  ASSERT_TRUE(costs.ok()) << costs.status();
  EXPECT_EQ(costs->costs.stages(0).forward_seconds(), 7.5);
  EXPECT_TRUE(costs->deviation.has_value());
}

// attn(F) 4.833 and mlp(F) 4.289 ms of the first layer.
TEST(RunCostsTest, TheCostsOfDeepSeekV3) {
  const char* data = std::getenv("WEIR_DATA");
  const std::string path = absl::StrCat(data == nullptr ? "" : data,
                                        "/kineto/deepseek_v3_train.json.gz");
  if (data == nullptr || !std::filesystem::exists(path)) {
    GTEST_SKIP() << "needs the folder kineto in $WEIR_DATA";
  }
  const auto run = results::ImportTrace({path});
  ASSERT_TRUE(run.ok()) << run.status();
  const auto costs = CostsOfRun(*run);
  ASSERT_TRUE(costs.ok()) << costs.status();
  EXPECT_NEAR(costs->costs.stages(0).forward_seconds(), 9.122e-3, 2e-6);
  EXPECT_FALSE(costs->deviation.has_value());
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
