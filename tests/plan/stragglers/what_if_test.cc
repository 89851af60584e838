// SPDX-License-Identifier: Apache-2.0
// Checks what-if analyses of runs whose stragglers are known.
#include "plan/stragglers/what_if.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "plan/stragglers/what_if_views.h"
#include "results/import/import_trace.h"
#include "tests/results/import/sample_trace.h"

namespace weir::plan::what_if_test {
namespace {

using results::RecordedOperation;
using results::SampleShape;
using testing::HasSubstr;

WhatIf Analyze(const SampleShape& shape) {
  const auto run = results::ImportTraceText(
      "sample", results::SampleCsv(results::SampleOperations(shape)));
  EXPECT_TRUE(run.ok()) << run.status();
  const auto what_if = AnalyzeRun(*run);
  EXPECT_TRUE(what_if.ok()) << what_if.status();
  return *what_if;
}

TEST(WhatIfTest, ARunWithoutStragglersIsIdeal) {
  const SampleShape shape;
  const WhatIf what_if = Analyze(shape);
  ASSERT_EQ(what_if.steps.size(), 3);
  for (const StepWhatIf& step : what_if.steps) {
    const double seconds = results::SampleStepSeconds(shape, step.step);
    EXPECT_NEAR(step.recorded_seconds, seconds, 1e-9);
    EXPECT_NEAR(step.with_gaps_seconds, seconds, 1e-9);
    EXPECT_NEAR(step.replayed_seconds, seconds, 1e-9);
    EXPECT_NEAR(step.ideal_seconds, seconds, 1e-9);
  }
  EXPECT_NEAR(what_if.slowdown, 1, 1e-9);
  EXPECT_THAT(SuspectText(what_if), HasSubstr("no suspect"));
}

TEST(WhatIfTest, ASlowWorkerExplainsTheSlowdown) {
  SampleShape shape;
  shape.num_replicas = 4;
  shape.num_ranks = 4;
  shape.num_microbatches = 8;
  shape.factor = [](const RecordedOperation& o) {
    return o.replica == 2 && o.rank == 1 ? 3.0 : 1.0;
  };
  const WhatIf what_if = Analyze(shape);
  EXPECT_NEAR(what_if.replayed_seconds, results::SampleStepSeconds(shape, 10),
              1e-9);
  EXPECT_GT(what_if.slowdown, 1.2);
  EXPECT_EQ(what_if.by_stage[0].name, "stage 1");
  EXPECT_EQ(what_if.by_replica[0].name, "replica 2");
  EXPECT_EQ(what_if.by_worker[0].name, "replica 2, stage 1");
  EXPECT_NEAR(what_if.slowest_workers.share, 1, 0.05);
  EXPECT_LT(what_if.last_stage.share, 0.1);
  EXPECT_THAT(SuspectText(what_if), HasSubstr("suspect: replica 2, stage 1"));
}

TEST(WhatIfTest, ALongLastStageExplainsTheSlowdown) {
  SampleShape shape;
  shape.num_ranks = 4;
  shape.num_microbatches = 8;
  shape.factor = [](const RecordedOperation& o) {
    return o.rank == 3 ? 1.5 : 1.0;
  };
  const WhatIf what_if = Analyze(shape);
  EXPECT_EQ(what_if.by_stage[0].name, "stage 3");
  EXPECT_GT(what_if.last_stage.share, 1);
  EXPECT_THAT(SuspectText(what_if), HasSubstr("suspect: stage 3"));
  // Everything waits for the longest stage.
  ASSERT_EQ(what_if.slack_seconds.size(), 4);
  EXPECT_NEAR(what_if.slack_seconds[3], 0, 1e-9);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_GT(what_if.slack_seconds[rank], 0.5) << rank;
  }
}

// One replica computes a microbatch that is longer: by kind, only passes and
// not communication cause it.
TEST(WhatIfTest, KindsOfOperationsAreRanked) {
  SampleShape shape;
  shape.factor = [](const RecordedOperation& o) {
    return o.kind == results::RecordedKind::kBackward && o.microbatch == 1 &&
                   o.replica == 0
               ? 2.0
               : 1.0;
  };
  const WhatIf what_if = Analyze(shape);
  EXPECT_EQ(what_if.by_kind[0].name, "backward");
  for (const Share& share : what_if.by_kind) {
    if (share.name == "backward") continue;
    EXPECT_NEAR(share.slowdown, 1, 1e-9) << share.name;
  }
}

TEST(WhatIfTest, JsonHasAllValues) {
  const auto run = results::ImportTraceText(
      "sample", results::SampleCsv(results::SampleOperations({})));
  ASSERT_TRUE(run.ok());
  const auto what_if = AnalyzeRun(*run);
  ASSERT_TRUE(what_if.ok());
  const auto json = nlohmann::json::parse(WhatIfJson(*run, *what_if));
  EXPECT_EQ(json["slowdown"], what_if->slowdown);
  EXPECT_EQ(json["by_worker"].size(), 4);
  for (const auto& worker : json["by_worker"]) {
    EXPECT_EQ(worker["name"], WorkerName(worker["replica"], worker["rank"]));
  }
  EXPECT_EQ(json["steps"].size(), 3);
  EXPECT_THAT(WhatIfTable(*run, *what_if), HasSubstr("slowdown S: 1.0000"));
}

}  // namespace
}  // namespace weir::plan::what_if_test
