// SPDX-License-Identifier: Apache-2.0
// Post-validation of optimizer steps: batches with a flush follow each other
// without a barrier.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "base/textproto.h"
#include "sim/bounds/bound.h"
#include "sim/engine/graph_runner.h"
#include "sim/fast/fast_simulator.h"
#include "sim/simulate.h"
#include "tests/sim/given_scenario.h"

namespace weir::sim::post_validation_test {

// There may be only one runner in a process.
GraphRunner& Runner() {
  static auto& runner = *new GraphRunner();
  return runner;
}

Result RunScenario(const scenarios::ResolvedScenario& scenario) {
  SimulateOptions options;
  options.runner = &Runner();
  const auto result = Simulate(scenario, options);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : Result();
}

scenarios::ResolvedScenario Given(const std::string& schedule, int num_ranks,
                                  int num_microbatches) {
  GivenScenario given{.schedule = schedule,
                      .num_ranks = num_ranks,
                      .num_microbatches = num_microbatches,
                      .forward_seconds = {1.25},
                      .backward_seconds = {2.5},
                      .weight_gradient_seconds = {1.25}};
  if (schedule == "zb-v") given.num_chunks = 2;
  return Resolve(given);
}

Result RunPostValidated(scenarios::ResolvedScenario scenario) {
  scenario.scenario.mutable_training()->set_post_validation(true);
  return RunScenario(scenario);
}

// Qi et al., 2024, section 2: without the barrier and with equal passes, ZB-H2
// has no bubble.
TEST(PostValidationTest, ZbH2HasNoBubble) {
  for (int p = 2; p <= 12; ++p) {
    for (int m : {2 * p, 3 * p, 4 * p + 1}) {
      const Result result = RunPostValidated(Given("zb-h2", p, m));
      const double expected = m * 3.75;
      EXPECT_NEAR(result.batch_seconds(), expected, 1e-9 * expected)
          << p << " " << m;
      EXPECT_NEAR(result.idle_ratio(), 0, 1e-9);
      EXPECT_TRUE(result.steady_state());
      EXPECT_EQ(result.weight_versions(), 1u);
      EXPECT_EQ(result.staleness_updates(), 0u);
      EXPECT_EQ(result.ranks(0).peak_activation_microbatches(),
                std::min(2 * p - 1, m));
      const Result barrier = RunScenario(Given("zb-h2", p, m));
      EXPECT_NEAR(barrier.batch_seconds(), expected + (p - 1) * 1.25,
                  1e-9 * expected);
      EXPECT_NEAR(result.batch_seconds(), barrier.span_seconds(),
                  1e-9 * expected);
    }
  }
}

// The papers' cost of other passes, m (F + I + W) + (p - 1) (F + I - 2 W).
TEST(PostValidationTest, ClosedFormOfZbH2) {
  for (int p = 2; p <= 12; ++p) {
    for (int m : {2 * p, 5 * p}) {
      const double f = 1.25, i = 1.5, w = 1;
      const Result result =
          RunPostValidated(Resolve({.schedule = "zb-h2",
                                    .num_ranks = p,
                                    .num_microbatches = m,
                                    .forward_seconds = {f},
                                    .backward_seconds = {i + w},
                                    .weight_gradient_seconds = {w}}));
      const double expected = m * (f + i + w) + (p - 1) * (f + i - 2 * w);
      EXPECT_NEAR(result.batch_seconds(), expected, 1e-9 * expected)
          << p << " " << m;
    }
  }
}

// The cost of ZB-1p and ZB-2p in the papers: the longest span of a rank.
TEST(PostValidationTest, AutomaticSchedulesTakeTheLongestSpan) {
  for (const char* schedule : {"zb-1p", "zb-2p", "zb-h1", "zb-v"}) {
    const scenarios::ResolvedScenario scenario = Given(schedule, 4, 12);
    const Result barrier = RunScenario(scenario);
    const Result result = RunPostValidated(scenario);
    EXPECT_LE(result.batch_seconds(), barrier.batch_seconds() * (1 + 1e-9));
    EXPECT_GE(result.batch_seconds(), barrier.span_seconds() * (1 - 1e-9));
    EXPECT_NEAR(result.peak_memory_bytes(), barrier.peak_memory_bytes(), 1);
  }
}

// The first rank of 1F1B and GPipe ends last: no barrier delays it.
TEST(PostValidationTest, ChangesNothingWhereTheFirstRankEndsLast) {
  for (const char* schedule : {"gpipe", "1f1b"}) {
    GivenScenario given{.schedule = schedule, .hop_seconds = 0.25};
    const Result barrier = RunScenario(Resolve(given));
    const Result result = RunPostValidated(Resolve(given));
    EXPECT_NEAR(result.batch_seconds(), barrier.batch_seconds(), 1e-9);
  }
}

TEST(PostValidationTest, FollowsTheRuntimeForSplitBackwards) {
  for (const char* schedule : {"zb-h2", "1f1b"}) {
    GivenScenario given{.schedule = schedule,
                        .forward_seconds = {1},
                        .backward_seconds = {2},
                        .weight_gradient_seconds = {1}};
    if (given.schedule == "1f1b") given.weight_gradient_seconds = {};
    scenarios::ResolvedScenario scenario = Resolve(given);
    EXPECT_EQ(RunScenario(scenario).num_batches(), 1u);
    scenario.runtime.set_post_validates_steps(true);
    const bool splits = given.schedule == "zb-h2";
    EXPECT_EQ(RunScenario(scenario).num_batches() > 1, splits);
    scenario.scenario.mutable_training()->set_post_validation(false);
    EXPECT_EQ(RunScenario(scenario).num_batches(), 1u);
    scenario.scenario.mutable_training()->set_post_validation(true);
    EXPECT_GT(RunScenario(scenario).num_batches(), 1u);
  }
}

double SumOfParts(const Result& result) {
  double sum = 0;
  for (const PartSeconds& part : result.parts()) sum += part.seconds();
  return sum;
}

// A batch after a rollback begins anew on all ranks, as after a barrier.
TEST(PostValidationTest, RollbacksCostTheBarrier) {
  scenarios::ResolvedScenario scenario = Given("zb-h2", 4, 12);
  const double barrier = RunScenario(scenario).batch_seconds();
  const double period = RunPostValidated(scenario).batch_seconds();
  scenario.scenario.mutable_training()->set_rollback_fraction(0.25);
  const Result result = RunPostValidated(scenario);
  EXPECT_NEAR(result.batch_seconds(), 0.75 * period + 0.25 * barrier, 1e-9);
  EXPECT_NEAR(SumOfParts(result), result.batch_seconds(), 1e-9);
  scenario.scenario.mutable_training()->set_post_validation(false);
  EXPECT_NEAR(RunScenario(scenario).batch_seconds(), barrier, 1e-9);
}

absl::StatusOr<scenarios::ResolvedScenario> Modelled(
    const std::string& schedule, const std::string& training) {
  Scenario scenario;
  const absl::Status status =
      ParseTextProto("test",
                     absl::StrCat(R"(
        transformer { num_layers: 16 hidden_size: 1536 num_heads: 12
                      vocabulary_size: 8192 num_positions: 512 causal: true
                      tied_embeddings: true }
        cluster: "dgx-a100" num_nodes: 1
        parallelism { pipeline: 4 data: 2 )",
                                  schedule == "zb-v" ? "chunks: 2" : "", R"( }
        batch { microbatch_size: 2 global_batch_size: 48 sequence_length: 512 }
        schedule: ")",
                                  schedule, R"("
        runtime: "zero-bubble"
        training { precision: MIXED_FP16 )",
                                  training, " }"),
                     &scenario);
  if (!status.ok()) return status;
  return scenarios::ResolveScenario("test", scenario);
}

TEST(PostValidationTest, MethodsAgreeOnModelledScenarios) {
  FastSimulator fast(&Runner());
  for (const char* schedule : {"zb-h1", "zb-h2", "zb-1p", "zb-v", "1f1b"}) {
    for (const char* training :
         {"", "distributed_optimizer: true", "rollback_fraction: 0.1"}) {
      SCOPED_TRACE(absl::StrCat(schedule, " ", training));
      const auto scenario = Modelled(schedule, training);
      ASSERT_TRUE(scenario.ok()) << scenario.status();
      const Result result = RunScenario(*scenario);
      EXPECT_EQ(result.num_batches() > 1, std::string(schedule) != "1f1b");
      EXPECT_TRUE(result.steady_state());
      EXPECT_NEAR(SumOfParts(result), result.batch_seconds(),
                  1e-9 * result.batch_seconds());
      const auto estimate = fast.Estimate(*scenario);
      ASSERT_TRUE(estimate.ok()) << estimate.status();
      EXPECT_NEAR(estimate->batch_seconds, result.batch_seconds(),
                  1e-9 * result.batch_seconds());
      const auto bound = BoundOf(*scenario);
      ASSERT_TRUE(bound.ok()) << bound.status();
      EXPECT_LE(bound->batch_seconds, result.batch_seconds() * (1 + 1e-9));
      EXPECT_LE(bound->any_order_seconds, result.batch_seconds() * (1 + 1e-9));
      EXPECT_GT(bound->batch_seconds, 0.5 * result.batch_seconds());
      for (const RankResult& rank : result.ranks()) {
        const double peak = rank.peak_memory_bytes();
        EXPECT_NEAR(estimate->peak_bytes[rank.rank()], peak, 1e-9 * peak);
        EXPECT_LE(bound->peak_bytes[rank.rank()], peak * (1 + 1e-9));
      }
      // Redoing a step may cost more than the barrier.
      if (scenario->scenario.training().rollback_fraction() > 0) continue;
      scenarios::ResolvedScenario with_barrier = *scenario;
      with_barrier.scenario.mutable_training()->set_post_validation(false);
      const Result barrier = RunScenario(with_barrier);
      EXPECT_LE(result.batch_seconds(), barrier.batch_seconds() * (1 + 1e-9));
      EXPECT_NEAR(result.peak_memory_bytes(), barrier.peak_memory_bytes(),
                  1e-6 * barrier.peak_memory_bytes());
    }
  }
}

TEST(PostValidationTest, RefusesShardedWeights) {
  const auto scenario =
      Modelled("zb-h1", "post_validation: true fully_sharded: true");
  EXPECT_THAT(scenario.status().message(),
              testing::HasSubstr("training.post_validation"));
  const auto by_runtime = Modelled("zb-h1", "fully_sharded: true");
  ASSERT_TRUE(by_runtime.ok()) << by_runtime.status();
  EXPECT_EQ(RunScenario(*by_runtime).num_batches(), 1u);
}

}  // namespace weir::sim::post_validation_test
