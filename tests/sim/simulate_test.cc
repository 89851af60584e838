// SPDX-License-Identifier: Apache-2.0
// Tests the values of a result that are derived from others.
#include "sim/simulate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/textproto.h"
#include "models/layer_work.h"
#include "schedules/registry.h"
#include "tests/sim/given_scenario.h"
#include "tests/sim/measured.h"

namespace weir::sim::simulate_test {

// GPT-2 on two replicas of two stages.
scenarios::ResolvedScenario Gpt2() {
  Scenario scenario;
  scenario.set_model("gpt2");
  scenario.set_cluster("p3-16xlarge");
  scenario.set_num_nodes(1);
  scenario.set_schedule("1f1b");
  scenario.set_runtime("none");
  scenario.mutable_parallelism()->set_pipeline(2);
  scenario.mutable_parallelism()->set_data(2);
  scenario.mutable_batch()->set_microbatch_size(2);
  scenario.mutable_batch()->set_global_batch_size(24);
  scenario.mutable_batch()->set_sequence_length(512);
  const auto resolved = scenarios::ResolveScenario("test", scenario);
  EXPECT_TRUE(resolved.ok()) << resolved.status();
  return *resolved;
}

TEST(SimulateTest, ThroughputAndUtilization) {
  const scenarios::ResolvedScenario resolved = Gpt2();
  const auto result = Simulate(resolved);
  ASSERT_TRUE(result.ok()) << result.status();
  const double seconds = result->batch_seconds();
  EXPECT_EQ(seconds, result->makespan_seconds());
  EXPECT_DOUBLE_EQ(result->samples_per_second(), 24 / seconds);
  EXPECT_DOUBLE_EQ(result->tokens_per_second(), 24 * 512 / seconds);
  // All 24 sequences, on four V100.
  models::WorkSpec spec;
  spec.microbatch_size = 24;
  spec.sequence_length = 512;
  const double flops =
      models::ModelFlops(models::LayersOf(resolved.model, spec), 1);
  EXPECT_NEAR(result->model_flops_utilization(), flops / (seconds * 4 * 125e12),
              1e-9);
}

TEST(SimulateTest, FitsUpToTheLastByte) {
  scenarios::ResolvedScenario resolved = Gpt2();
  const auto result = Simulate(resolved);
  ASSERT_TRUE(result.ok()) << result.status();
  double peak = 0;
  for (const RankResult& rank : result->ranks()) {
    peak = std::max(peak, rank.peak_memory_bytes());
  }
  EXPECT_EQ(result->peak_memory_bytes(), peak);
  // One rank has a second microbatch in flight, the other the logits.
  EXPECT_NE(result->ranks(0).peak_memory_bytes(),
            result->ranks(1).peak_memory_bytes());
  for (double missing : {0, 1}) {
    resolved.device.mutable_memory_bytes()->set_value(peak - missing);
    const auto again = Simulate(resolved);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->memory_capacity_bytes(), peak - missing);
    EXPECT_EQ(again->fits_memory(), missing == 0);
  }
}

// A run may fail where only the upper end of the interval of its peak exceeds
// the memory.
TEST(SimulateTest, WarnsWhereLittleMemoryIsLeft) {
  scenarios::ResolvedScenario resolved = Gpt2();
  const auto unlimited = Simulate(resolved);
  ASSERT_TRUE(unlimited.ok()) << unlimited.status();
  const double peak = unlimited->peak_memory_bytes();
  const double high = unlimited->peak_memory_bytes_high();
  EXPECT_LT(unlimited->peak_memory_bytes_low(), peak);
  EXPECT_GT(high, peak);
  EXPECT_GE(unlimited->used_memory_bytes(), peak);
  const auto warns = [&](double part) {
    resolved.device.mutable_memory_bytes()->set_value(peak / part);
    const auto result = Simulate(resolved);
    EXPECT_TRUE(result.ok()) << result.status();
    for (const std::string& warning : result->warnings()) {
      if (warning == MarginWarning(part)) return true;
    }
    return false;
  };
  EXPECT_FALSE(warns(0.99 * peak / high));
  EXPECT_TRUE(warns(1.01 * peak / high));
  EXPECT_FALSE(warns(1.01));  // does not fit, reported elsewhere
}

// A first stage that is twice as fast as the second does not run ahead of it:
// at most two inputs and two outputs are queued in addition to those in use.
TEST(SimulateTest, InferenceHoldsAFewInputsHoweverLongItRuns) {
  Scenario scenario = Gpt2().scenario;
  scenario.set_schedule("edgepipe");
  scenario.mutable_parallelism()->set_data(1);
  for (int blocks : {4, 8}) {
    scenario.mutable_parallelism()->add_blocks_per_stage(blocks);
  }
  std::vector<std::vector<double>> buffers;
  std::vector<double> seconds;
  for (int batch : {32, 256}) {
    scenario.mutable_batch()->set_global_batch_size(batch);
    const auto resolved = scenarios::ResolveScenario("test", scenario);
    ASSERT_TRUE(resolved.ok()) << resolved.status();
    const auto result = Simulate(*resolved);
    ASSERT_TRUE(result.ok()) << result.status();
    auto& of_ranks = buffers.emplace_back();
    for (const RankResult& rank : result->ranks()) {
      of_ranks.push_back(rank.peak_memory_bytes());
    }
    seconds.push_back(result->batch_seconds());
  }
  EXPECT_EQ(buffers[0], buffers[1]);
  // As fast as the slowest stage, regardless of queues.
  EXPECT_NEAR(seconds[1], 8 * seconds[0], 1e-6 * seconds[1]);
}

// Results are ordered by replica; the default placement numbers the replicas of
// a rank first.
TEST(SimulateTest, RanksSayWhereTheyAre) {
  const auto result = Simulate(Gpt2());
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->ranks_size(), 4);
  for (int i = 0; i < 4; ++i) {
    const uint32_t replica = i / 2, rank = i % 2;
    EXPECT_EQ(result->ranks(i).replica(), replica);
    EXPECT_EQ(result->ranks(i).rank(), rank);
    EXPECT_EQ(result->ranks(i).tensor_rank(), 0u);
    EXPECT_EQ(result->ranks(i).gpu(), 2 * rank + replica);
  }
}

// The optimizer step follows the last action. No action waits for it, but the
// batch includes it.
TEST(SimulateTest, TheStepIsPartOfTheBatch) {
  Measured measured;
  measured.num_ranks = 2;
  measured.forward_seconds = {1, 1};
  measured.backward_seconds = {2, 2};
  measured.activation_bytes = {0, 0};
  measured.parameter_bytes = {400, 800};
  scenarios::ResolvedScenario resolved =
      Resolve(measured, ChainOfLinks(2, 1e15, 1e-15));
  resolved.device.mutable_memory_bytes_per_second()->set_value(1000);
  const auto result = Simulate(resolved);
  ASSERT_TRUE(result.ok()) << result.status();
  // 28 bytes per parameter of 4 bytes, at 1000 bytes/s. Rank 0 ends its
  // backward at 6, rank 1 at 4.
  EXPECT_NEAR(result->makespan_seconds(), 4 + 5.6, 1e-9);
  EXPECT_NEAR(result->ranks(0).busy_seconds(), 3 + 2.8, 1e-9);
  EXPECT_NEAR(result->ranks(1).busy_seconds(), 3 + 5.6, 1e-9);
  EXPECT_NEAR(result->ranks(0).span_seconds(), 6, 1e-9);
  EXPECT_NEAR(result->ranks(1).span_seconds(), 3, 1e-9);
}

// The limit names the busiest rank and its activity; the parts are those of the
// window.
TEST(SimulateTest, TheLimitNamesTheBusiestRank) {
  Measured measured;
  measured.num_ranks = 2;
  measured.num_microbatches = 4;
  measured.forward_seconds = {1, 4};
  measured.backward_seconds = {1, 4};
  measured.activation_bytes = {0, 0};
  const auto result = Simulate(Resolve(measured, ChainOfLinks(2, 1e15, 0)));
  ASSERT_TRUE(result.ok()) << result.status();
  // 1 + 4 x 8 + 1 seconds, of which rank 1 computes 32 and rank 0 8.
  EXPECT_EQ(result->limit(),
            "busiest rank 1 (stage 1) is 94.1 % computing, 5.9 % idle in the "
            "pipeline bubble; stages are uneven: ranks are busy 58.8 % "
            "of the time on average, this one 94.1 %");
}

// The timeline of a long run may contain only its end: earlier events are
// omitted, and memory starts with the amount in use.
TEST(SimulateTest, ATimelineCanBeginLate) {
  Measured measured;
  measured.schedule = "pipedream-2bw";
  measured.num_ranks = 2;
  measured.num_microbatches = 3;
  measured.num_batches = 0;
  measured.forward_seconds = {1, 1};
  measured.backward_seconds = {2, 2};
  measured.activation_bytes = {10, 0};
  const scenarios::ResolvedScenario resolved =
      Resolve(measured, ChainOfLinks(2, 1e15, 1e-15));
  SimulateOptions options;
  options.keep_timeline = true;
  const auto whole = Simulate(resolved, options);
  options.timeline_batches = 2;
  const auto late = Simulate(resolved, options);
  ASSERT_TRUE(whole.ok() && late.ok());
  EXPECT_EQ(whole->timeline().from_seconds(), 0);
  const Timeline& timeline = late->timeline();
  // Two batches of 9 s before the end of the steady state.
  const double from = timeline.from_seconds();
  EXPECT_GT(from, 9);
  int expected = 0;
  for (double end : whole->timeline().actions().end_seconds()) {
    expected += end >= from;
  }
  EXPECT_EQ(timeline.actions().gpu_size(), expected);
  EXPECT_LT(expected, whole->timeline().actions().gpu_size());
  EXPECT_GT(expected, 2 * 2 * 2 * 3);
  for (double end : timeline.transfers().end_seconds()) EXPECT_GE(end, from);
  EXPECT_EQ(timeline.memory().seconds(0), from);
  EXPECT_EQ(late->peak_memory_bytes(), whole->peak_memory_bytes());
}

// Returns the scenarios used to check every kind of schedule.
std::vector<scenarios::ResolvedScenario> ScenariosOf(
    const schedules::ScheduleKind& kind) {
  std::vector<scenarios::ResolvedScenario> scenarios;
  GivenScenario given;
  given.schedule = std::string(kind.name);
  given.weight_gradient_seconds = {1};
  for (const bool blocking : {false, true}) {
    for (const int chunks : {1, 2}) {
      for (const int microbatches : {3, 8}) {
        given.blocking = blocking;
        given.num_chunks = chunks;
        given.num_microbatches = microbatches;
        scenarios.push_back(Resolve(given));
      }
    }
  }
  return scenarios;
}

TEST(CheckSimulationTest, ReturnsTheErrorsOfSimulateOrItsSchedule) {
  int num_deadlocks = 0, num_illegal = 0;
  for (const schedules::ScheduleKind& kind : schedules::AllScheduleKinds()) {
    for (const scenarios::ResolvedScenario& scenario : ScenariosOf(kind)) {
      const absl::Status simulated = Simulate(scenario).status();
      const auto checked = CheckSimulation(scenario);
      EXPECT_EQ(checked.status(), simulated) << kind.name;
      num_deadlocks += absl::IsFailedPrecondition(simulated);
      num_illegal += absl::IsInvalidArgument(simulated);
      if (!checked.ok() || !kind.flush) continue;
      EXPECT_EQ(checked->rank_actions,
                ScheduleOfScenario(scenario, 1)->rank_actions)
          << kind.name;
    }
  }
  EXPECT_GT(num_deadlocks, 3);
  EXPECT_GT(num_illegal, 3);
}

TEST(SimulateTest, AResultSaysWhatWasSimulated) {
  scenarios::ResolvedScenario resolved = Gpt2();
  resolved.scenario.set_name("a name");
  const auto result = Simulate(resolved);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->name(), "a name");
  EXPECT_EQ(result->schedule(), "1f1b");
  EXPECT_EQ(result->method(), "full");
  EXPECT_EQ(result->tensor_parallel(), 1);
  EXPECT_EQ(result->pipeline_parallel(), 2);
  EXPECT_EQ(result->data_parallel(), 2);
  EXPECT_EQ(result->chunks(), 1);
  EXPECT_EQ(result->microbatch_size(), 2);
  EXPECT_EQ(result->global_batch_size(), 24);
  EXPECT_EQ(result->sequence_length(), 512);
  EXPECT_EQ(result->num_microbatches(), 24 / (2 * 2));
  EXPECT_EQ(result->num_batches(), 1);
  EXPECT_FALSE(result->forward_only());
  // The result contains the scenario, which can be simulated again.
  Scenario again;
  ASSERT_TRUE(
      ParseTextProto("x", result->provenance().scenario(), &again).ok());
  EXPECT_EQ(again.SerializeAsString(), resolved.scenario.SerializeAsString());
}

}  // namespace weir::sim::simulate_test
