// SPDX-License-Identifier: Apache-2.0
// Checks costs of recorded runs.
#include "plan/stragglers/run_costs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

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

// Costs of a run whose clocks differ are those of the true times.
TEST(RunCostsTest, ClocksThatDifferDoNotChangeCosts) {
  SampleShape shape;
  shape.num_ranks = 3;
  shape.num_microbatches = 4;
  shape.factor = [](const RecordedOperation& o) {
    return 1 + 0.1 * o.rank + 0.01 * o.microbatch;
  };
  auto operations = results::SampleOperations(shape);
  for (RecordedOperation& o : operations) {
    const double seconds = 7.25 * o.replica - 3.5 * o.rank;
    o.start_seconds += seconds;
    o.end_seconds += seconds;
  }
  const auto moved =
      results::ImportTraceText("sample", results::SampleCsv(operations));
  ASSERT_TRUE(moved.ok()) << moved.status();
  EXPECT_EQ(moved->notes.size(), 1);
  const auto truth = RunOf(shape);
  ASSERT_TRUE(truth.ok()) << truth.status();
  const auto costs = CostsOfRun(*moved), true_costs = CostsOfRun(*truth);
  ASSERT_TRUE(costs.ok()) << costs.status();
  ASSERT_TRUE(true_costs.ok()) << true_costs.status();
  for (int stage = 0; stage < 3; ++stage) {
    const auto& a = costs->costs.stages(stage);
    const auto& b = true_costs->costs.stages(stage);
    EXPECT_NEAR(a.forward_seconds(), b.forward_seconds(), 1e-9);
    EXPECT_NEAR(a.backward_seconds(), b.backward_seconds(), 1e-9);
  }
  EXPECT_NEAR(costs->costs.hop_seconds(), 0.25, 1e-9);
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

// Replica 1 takes 1.25 times as long; within each, half of the forwards of
// stage 1 take 0.8 and half 1.2 times the median.
TEST(RunCostsTest, ReplicasAndDistributionsAreKept) {
  SampleShape shape;
  shape.num_microbatches = 4;
  shape.factor = [](const RecordedOperation& o) {
    const bool varies = o.kind == RecordedKind::kForward && o.rank == 1;
    return (o.replica == 1 ? 1.25 : 1.0) *
           (varies ? (o.microbatch % 2 == 0 ? 0.8 : 1.2) : 1.0);
  };
  const auto run = RunOf(shape);
  ASSERT_TRUE(run.ok()) << run.status();
  const auto result = CostsOfRun(*run);
  ASSERT_TRUE(result.ok()) << result.status();
  const GivenCosts& costs = result->costs;
  ASSERT_EQ(costs.replicas_size(), 2);
  for (int replica = 0; replica < 2; ++replica) {
    const double factor = replica == 1 ? 1.25 : 1;
    for (const GivenCosts::Stage& stage : costs.replicas(replica).stages()) {
      EXPECT_NEAR(stage.forward_seconds(), factor, 1e-9);
      EXPECT_NEAR(stage.backward_seconds(), 2 * factor, 1e-9);
    }
  }
  const auto& factors = costs.stages(1).forward_factors();
  ASSERT_EQ(factors.size(), 2 * 4 * shape.num_steps);
  double sum = 0;
  for (const double each : factors) sum += each;
  EXPECT_NEAR(sum / factors.size(), 1, 1e-9);
  EXPECT_NEAR(factors[0], 0.8, 1e-9);
  EXPECT_NEAR(factors[factors.size() - 1], 1.2, 1e-9);
}

// A pass that always takes the same time has no factors.
TEST(RunCostsTest, EqualTimesHaveNoFactors) {
  results::RecordedRun run;
  run.num_replicas = run.num_ranks = run.num_stages = 1;
  for (int microbatch = 0; microbatch < 4; ++microbatch) {
    for (const RecordedKind kind :
         {RecordedKind::kForward, RecordedKind::kBackward}) {
      RecordedOperation o;
      o.kind = kind;
      o.stage = 0;
      o.microbatch = microbatch;
      o.end_seconds = 2;
      run.operations.push_back(o);
    }
  }
  const auto costs = CostsOfRun(run);
  ASSERT_TRUE(costs.ok()) << costs.status();
  EXPECT_TRUE(costs->costs.stages(0).forward_factors().empty());
  EXPECT_TRUE(costs->costs.replicas().empty());
}

TEST(RunCostsTest, PartsKeepTheMean) {
  EXPECT_THAT(MeansOfParts({1, 2, 3, 4}, 2), testing::ElementsAre(1.5, 3.5));
  EXPECT_THAT(MeansOfParts({1, 3}, 4), testing::ElementsAre(1, 1, 3, 3));
  EXPECT_THAT(MeansOfParts({0.1, 0.1, 0.1}, 7), testing::Each(0.1));
  std::vector<double> values;
  double sum = 0;
  for (int i = 0; i < 1000; ++i) {
    values.push_back(std::exp(i / 300.0));
    sum += values.back();
  }
  const std::vector<double> parts = MeansOfParts(values, 256);
  EXPECT_TRUE(std::is_sorted(parts.begin(), parts.end()));
  EXPECT_NEAR(std::accumulate(parts.begin(), parts.end(), 0.0) / 256,
              sum / 1000, 1e-12 * sum);
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
      HasSubstr("stage 0 has no backward pass in replica 0, expected a forward "
                "and a backward of every stage"));
}

}  // namespace
}  // namespace weir::plan::run_costs_test
