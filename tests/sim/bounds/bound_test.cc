// SPDX-License-Identifier: Apache-2.0
// Compares lower bounds with simulated runs.
#include "sim/bounds/bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <random>

#include "absl/strings/str_cat.h"
#include "scenarios/cluster/cluster.h"
#include "schedules/registry.h"
#include "schedules/source.h"
#include "sim/engine/engine.h"
#include "sim/fast/fast_simulator.h"
#include "sim/report/memory.h"
#include "sim/simulate.h"
#include "tests/sim/by_costs.h"
#include "tests/sim/given_scenario.h"
#include "tests/sim/random_case.h"
#include "tests/sim/random_plan.h"

namespace weir::sim::bound_test {

constexpr double kRounding = 1e-9;

class Cases {
 public:
  explicit Cases(int seed) : random_(seed) {}
  int Int(int low, int high) {
    return std::uniform_int_distribution<>(low, high)(random_);
  }
  double Seconds(double low, double high) {
    return std::uniform_real_distribution<>(low, high)(random_);
  }

  GivenScenario Next(const schedules::ScheduleKind& kind) {
    GivenScenario given;
    given.schedule = std::string(kind.name);
    schedules::ScheduleSpec spec;
    do {
      spec.num_ranks = Int(1, 6);
      spec.num_chunks = Int(1, 3);
      spec.num_microbatches = Int(1, 20);
    } while (!kind.check(spec).ok());
    given.num_ranks = spec.num_ranks;
    given.num_chunks = spec.num_chunks;
    given.num_microbatches = spec.num_microbatches;
    given.num_batches = 0;
    const auto draw = [&](double low, double high) {
      const int num_stages = spec.num_ranks * spec.num_chunks;
      std::vector<double> seconds(num_stages);
      for (double& value : seconds) value = Seconds(low, high);
      return seconds;
    };
    given.forward_seconds = draw(0.1, 2);
    given.backward_seconds = draw(1.5, 3);
    given.weight_gradient_seconds = draw(0.1, 1.4);
    if (Int(0, 1) == 0) given.overlapped_seconds = draw(1, 4);
    given.offload_seconds = draw(0, 3);
    given.prediction_seconds = draw(0, 0.5);
    given.codec_seconds = draw(0, 0.5);
    given.hop_seconds = Int(0, 2) == 0 ? 0 : Seconds(0, 1.5);
    given.blocking = Int(0, 3) == 0;
    return given;
  }

 private:
  std::mt19937 random_;
};

TEST(BoundTest, ExactWithAFlushWhereNothingIsShared) {
  Cases cases(1);
  Bounder bounder;
  for (const schedules::ScheduleKind& kind : schedules::AllScheduleKinds()) {
    for (int k = 0; k < (kind.flush ? 12 : 4); ++k) {
      const GivenScenario given = cases.Next(kind);
      const scenarios::ResolvedScenario scenario = Resolve(given);
      const auto bound = bounder.Bound(scenario);
      const auto result = Simulate(scenario);
      SCOPED_TRACE(absl::StrCat(kind.name, " p ", given.num_ranks, " v ",
                                given.num_chunks, " m ", given.num_microbatches,
                                " blocking ", given.blocking));
      ASSERT_EQ(bound.status().code(), result.status().code())
          << bound.status() << result.status();
      if (!result.ok()) continue;
      const double seconds = result->batch_seconds();
      EXPECT_LE(bound->batch_seconds, seconds * (1 + kRounding));
      if (kind.flush) {
        EXPECT_NEAR(bound->batch_seconds, seconds, kRounding * seconds);
      }
      EXPECT_LE(bound->any_order_seconds, seconds * (1 + kRounding));
    }
  }
}

// Compares with the time of the whole run, from the fast method.
TEST(BoundTest, OfALongBatchIsThatOfAnyOrder) {
  Bounder bounder;
  FastSimulator ranker;
  const std::pair<const char*, int> schedules[] = {{"1f1b", 1},
                                                   {"gpipe", 1},
                                                   {"zb-h1", 1},
                                                   {"interleaved-1f1b", 2},
                                                   {"breadth-first", 2}};
  for (const auto& [name, num_chunks] : schedules) {
    SCOPED_TRACE(name);
    GivenScenario given;
    given.schedule = name;
    given.num_chunks = num_chunks;
    given.num_microbatches = static_cast<int>(kMostOrderedActions) / 4;
    given.forward_seconds.clear();
    for (int s = 0; s < given.num_ranks * num_chunks; ++s) {
      given.forward_seconds.push_back(1 + 0.1 * (s % 3));
    }
    given.backward_seconds.assign(given.forward_seconds.size(), 2.5);
    given.weight_gradient_seconds.assign(given.forward_seconds.size(), 1);
    given.hop_seconds = 0.25;
    const auto bound = bounder.Bound(Resolve(given));
    const auto run = ranker.Estimate(Resolve(given));
    ASSERT_TRUE(bound.ok()) << bound.status();
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_EQ(bound->batch_seconds, bound->any_order_seconds);
    EXPECT_LE(bound->batch_seconds, run->batch_seconds * (1 + kRounding));
    // For a batch below the limit, the longest path is computed.
    given.num_microbatches = 1000;
    const auto shorter = bounder.Bound(Resolve(given));
    ASSERT_TRUE(shorter.ok()) << shorter.status();
    EXPECT_GT(shorter->batch_seconds, shorter->any_order_seconds);
    EXPECT_LE(bound->peak_bytes[0], run->peak_bytes[0] * (1 + kRounding));
  }
}

TEST(BoundTest, NeverAboveRunsThatShareEverything) {
  std::mt19937 random(3);
  double tight = 0, tight_bytes = 0;
  int count = 0, num_ranks = 0;
  for (int k = 0; k < 200; ++k) {
    const RandomCase one(&random);
    const PipelineInputs inputs = one.inputs();
    SCOPED_TRACE(absl::StrCat("case ", k));
    const PipelineGraph graph = BuildPipelineGraph(inputs);
    const auto recording = RunTaskGraph(graph.tasks, one.network().links());
    ASSERT_TRUE(recording.ok());
    if (!recording->complete()) continue;  // steps in a circular wait
    const auto ends = recording->end_seconds();
    const double seconds = *std::max_element(ends.begin(), ends.end());
    PassOrder::Buffers buffers;
    const PassOrder order(one.schedule(), false);
    ASSERT_TRUE(order.complete());
    const PlanBound bound =
        BoundOfRun(inputs, inputs.gpus, &order, false, &buffers);
    if (one.schedule().flush) {
      EXPECT_LE(bound.batch_seconds, seconds * (1 + kRounding));
      EXPECT_LE(bound.any_order_seconds, seconds * (1 + kRounding));
      tight += bound.batch_seconds / seconds;
      ++count;
    }
    for (int rank = 0; rank < one.schedule().num_ranks; ++rank) {
      double peak = 0;
      for (int gpu = 0; gpu < graph.num_gpus(); ++gpu) {
        if (graph.rank_of(gpu) != rank) continue;
        const MemoryTimeline memory =
            TraceMemory(inputs, graph, *recording, gpu, false);
        EXPECT_LE(bound.peak_bytes[rank], memory.peak_bytes * (1 + kRounding));
        peak = std::max(peak, memory.peak_bytes);
      }
      tight_bytes += bound.peak_bytes[rank] / peak;
      ++num_ranks;
    }
  }
  EXPECT_GE(tight, 0.9 * count);
  EXPECT_GE(tight_bytes, 0.8 * num_ranks);
}

// Covers adapters shared by GPUs of several ranks and replicas, blocking
// transfers, and symmetry reduction.
TEST(BoundTest, NeverAboveRunsThatShareAdapters) {
  // To test more cases, set WEIR_BOUND_TEST_CASES=5000.
  const char* given = std::getenv("WEIR_BOUND_TEST_CASES");
  const int num_cases = given == nullptr ? 400 : std::atoi(given);
  std::mt19937 random(77);
  double tight = 0;
  int count = 0, num_folded = 0;
  for (int k = 0; k < num_cases; ++k) {
    const RandomCase one(&random, /*nodes=*/true);
    if (!one.schedule().flush) continue;
    SCOPED_TRACE(absl::StrCat("case ", k));
    const PipelineInputs inputs = one.inputs();
    const PipelineGraph graph = BuildPipelineGraph(inputs);
    const auto recording = RunTaskGraph(graph.tasks, one.network().links());
    ASSERT_TRUE(recording.ok());
    const PassOrder order(one.schedule(),
                          inputs.communication.transfers() == BLOCKING);
    if (!recording->complete()) continue;
    ASSERT_TRUE(order.complete());
    const auto ends = recording->end_seconds();
    const double seconds = *std::max_element(ends.begin(), ends.end());
    const std::optional<Symmetry> symmetry = one.FindSymmetry();
    PassOrder::Buffers buffers;
    PlanBound bound = BoundOfRun(inputs, inputs.gpus, &order, false, &buffers);
    const auto expect_below = [&] {
      EXPECT_LE(bound.any_order_seconds, bound.batch_seconds);
      EXPECT_LE(bound.batch_seconds, seconds * (1 + kRounding));
    };
    expect_below();
    if (symmetry.has_value()) {
      ++num_folded;
      bound = BoundOfRun(inputs, Representatives(*symmetry), &order, false,
                         &buffers);
      expect_below();
    }
    tight += bound.batch_seconds / seconds;
    ++count;
  }
  EXPECT_GE(num_folded, count / 4);
  EXPECT_GE(tight, 0.8 * count);
}

// Covers different devices, adapters and replicas, and other layout orders.
TEST(BoundTest, NeverAboveScenariosOfAnyKind) {
  const char* given = std::getenv("WEIR_BOUND_TEST_SEEDS");
  const int num_seeds = given == nullptr ? 150 : std::atoi(given);
  int count = 0, num_unlike = 0;
  for (int seed = 0; seed < num_seeds; ++seed) {
    RandomPlan plan(seed);
    auto resolved = scenarios::ResolveScenario("test", plan.DrawScenario());
    if (!resolved.ok()) continue;
    plan.Change(&*resolved);
    if (!resolved->given_costs &&
        !scenarios::ValidateCluster("test", resolved->cluster).ok()) {
      continue;
    }
    const auto bound = BoundOf(*resolved);
    const auto result = Simulate(*resolved);
    if (!bound.ok() || !result.ok()) continue;
    SCOPED_TRACE(absl::StrCat("seed ", seed, ": ",
                              resolved->scenario.ShortDebugString()));
    if (bound->any_order_seconds > 0 && result->ranks_size() > 0 &&
        schedules::ScheduleFlushes(resolved->scenario.schedule())
            .value_or(false)) {
      EXPECT_LE(bound->batch_seconds,
                result->batch_seconds() * (1 + kRounding));
      EXPECT_LE(bound->any_order_seconds,
                bound->batch_seconds * (1 + kRounding));
      ++count;
      num_unlike += resolved->other_devices.empty() ? 0 : 1;
    }
  }
  EXPECT_GE(count, num_seeds / 4);
  EXPECT_GE(num_unlike, num_seeds / 30);
}

// With one rank and no flush, a batch takes all its passes and one optimizer
// step per update.
TEST(BoundTest, StepsOfEveryUpdateOfABatchCount) {
  for (const auto& [microbatches_per_update, num_steps] :
       {std::pair(1, 4), std::pair(2, 2), std::pair(4, 1)}) {
    ByCosts run{.schedule = ByHand({{0}}, 4,
                                   {Actions({"0F0", "0B0", "0F1", "0B1", "0F2",
                                             "0B2", "0F3", "0B3"})}),
                .costs = OneStage(1, 2)};
    run.schedule.flush = false;
    run.schedule.weights.microbatches_per_update = microbatches_per_update;
    run.costs.stages[0].step.seconds = 0.5;
    const CostsRun result(run);
    PassOrder::Buffers buffers;
    const PassOrder order(run.schedule, false);
    const PlanBound bound =
        BoundOfRun(result.inputs(), result.inputs().gpus, &order,
                   /*finds_period=*/true, &buffers);
    EXPECT_NEAR(bound.any_order_seconds, 4 * 3 + 0.5 * num_steps, 1e-9);
    EXPECT_NEAR(bound.any_order_seconds, result.Makespan(), 1e-9);
    EXPECT_EQ(bound.batch_seconds, bound.any_order_seconds);
  }
}

// Both stages of a replica reduce their gradients through one NIC, and the last
// reduction starts when all passes are done. No order of the passes ends
// earlier.
TEST(BoundTest, ReductionsThroughASharedNicBeginAfterAllPasses) {
  const double nic = 10, gradient_bytes = 40;
  ByCosts run{
      .schedule = ByHand({{0, 1}}, 1,
                         {Actions({"0F0", "0B0"}), Actions({"1F0", "1B0"})}),
      .costs = OneStage(1, 2),
      .data = 2};
  StageCosts stage = run.costs.stages[0];
  stage.parameters.gradient_bytes = gradient_bytes;
  // An order with split backwards gains nothing.
  stage.seconds.backward_parts = {stage.seconds.backward, 0};
  run.costs.stages.assign(2, stage);
  Cluster cluster = OneSwitch(2, 1e6, 0);
  cluster.mutable_groups(0)->set_count(2);
  cluster.mutable_groups(0)->mutable_node()->add_nics()->set_bytes_per_second(
      nic);
  run.cluster = cluster;
  const CostsRun result(run);
  // A ring over two replicas sends a stage's gradients out of each node once.
  const double expected = 1 + 1 + 2 + 2 * gradient_bytes / nic;
  EXPECT_NEAR(result.Makespan(), expected, kRounding * expected);
  PassOrder::Buffers buffers;
  const PassOrder order(run.schedule, false);
  const PlanBound bound =
      BoundOfRun(result.inputs(), result.inputs().gpus, &order,
                 /*finds_period=*/false, &buffers);
  EXPECT_NEAR(bound.any_order_seconds, expected, kRounding * expected);
  EXPECT_NEAR(bound.batch_seconds, expected, kRounding * expected);
}

// Two ranks share the first stage; one of them also has the second stage.
TEST(BoundTest, OfRanksWithTheFirstStageTheBusiestCounts) {
  ByCosts run{
      .schedule = ByHand({{0, 0}, {1, 0}}, 2,
                         {Actions({"0F0", "1F0", "1F1", "1B0", "1B1", "0B0"}),
                          Actions({"0F1", "0B1"})}),
      .costs = OneStage(1, 2)};
  run.schedule.flush = false;
  run.costs.stages.push_back(OneStage(0.5, 1).stages[0]);
  const CostsRun result(run);
  PassOrder::Buffers buffers;
  const PassOrder order(run.schedule, false);
  const PlanBound bound =
      BoundOfRun(result.inputs(), result.inputs().gpus, &order,
                 /*finds_period=*/false, &buffers);
  EXPECT_NEAR(bound.batch_seconds, 3 + 2 * 1.5, 1e-9);
  EXPECT_LE(bound.batch_seconds, result.Makespan());
}

// Microbatches of one route compress their transfers; those of the other route
// stay on the rank. Equal actions then take different times.
TEST(BoundTest, CompressionMayDifferByRoute) {
  ByCosts run{
      .schedule = ByHand({{0, 1}, {0, 0}}, 2,
                         {Actions({"0F0", "0F1", "1F1", "1B1", "0B0", "0B1"}),
                          Actions({"1F0", "1B0"})}),
      .costs = OneStage(1, 2)};
  run.schedule.compressed_transfers = true;
  run.costs.stages[0].seconds.codec = 0.5;
  run.costs.stages.resize(2, run.costs.stages[0]);
  const CostsRun result(run);
  // F and B of microbatch 0 with compression, and all passes of microbatch 1.
  const double expected = (1 + 2 + 2 * 0.5) + 2 * (1 + 2);
  EXPECT_NEAR(result.Makespan(), expected, 1e-9);
  PassOrder::Buffers buffers;
  const PassOrder order(run.schedule, false);
  const PlanBound bound =
      BoundOfRun(result.inputs(), result.inputs().gpus, &order,
                 /*finds_period=*/false, &buffers);
  EXPECT_NEAR(bound.batch_seconds, expected, 1e-9);
}

// The replicas of a stage continue their round robin in the next batch. If
// their number does not divide the number of microbatches, a replica has the
// larger part in some batches only.
TEST(BoundTest, NeverAboveBatchesThatReplicasShareUnevenly) {
  // The time per microbatch of the busiest rank, in seconds, divided among its
  // replicas.
  for (const auto& [schedule, per_microbatch] :
       {std::pair("pipedream:replicas=2-1", 2.25),
        std::pair("pipedream:replicas=1-2", 3.0)}) {
    for (int num_microbatches = 1; num_microbatches <= 6; ++num_microbatches) {
      for (int num_batches : {0, 2, 3, 4}) {
        if (num_microbatches * std::max(num_batches, 1) < 2) continue;
        GivenScenario given;
        given.schedule = schedule;
        given.num_ranks = 3;
        given.num_microbatches = num_microbatches;
        given.num_batches = num_batches;
        given.forward_seconds = {1, 0.75};
        given.backward_seconds = {2, 1.5};
        const scenarios::ResolvedScenario scenario = Resolve(given);
        const auto bound = BoundOf(scenario);
        const auto result = Simulate(scenario);
        ASSERT_TRUE(bound.ok() && result.ok())
            << bound.status() << result.status();
        SCOPED_TRACE(absl::StrCat(schedule, " m ", num_microbatches,
                                  " batches ", num_batches));
        const double seconds = result->batch_seconds();
        EXPECT_LE(bound->batch_seconds, seconds * (1 + kRounding));
        if (num_batches > 0) continue;
        EXPECT_NEAR(bound->any_order_seconds, num_microbatches * per_microbatch,
                    1e-9);
      }
    }
  }
}

// Minimum ratios of bound to simulation. Where replicas of several ranks share
// an adapter, an uncontended reduction takes a fraction of the time that all of
// them take together.
struct Tightness {
  const char* preset;
  double batch, peak;
};

TEST(BoundTest, TightForThePresets) {
  for (const auto& [name, batch, peak] :
       {Tightness{"pipedream-flush-gpt-2.2b", 0.5, 0.99},
        Tightness{"gpipe-gpt-2.2b", 0.5, 0.99},
        Tightness{"pipedream-2bw-gpt-2.2b", 0.7, 0.99},
        Tightness{"llama-2-70b-dgx-h100", 0.99, 0.99},
        Tightness{"gpt3-175b-selene", 0.99, 0.99}}) {
    SCOPED_TRACE(name);
    const auto loaded = scenarios::LoadScenario(name);
    ASSERT_TRUE(loaded.ok());
    auto scenario = scenarios::ResolveScenario(name, *loaded);
    ASSERT_TRUE(scenario.ok()) << scenario.status();
    const auto bound = BoundOf(*scenario);
    ASSERT_TRUE(bound.ok()) << bound.status();
    const auto slowed = Simulate(*scenario);
    ASSERT_TRUE(slowed.ok());
    EXPECT_LE(bound->batch_seconds, slowed->batch_seconds() * (1 + kRounding));
    // Bounds do not know which flows overlap with which passes.
    scenario->device.clear_collective_slowdown();
    const auto result = Simulate(*scenario);
    ASSERT_TRUE(result.ok());
    const double seconds = result->batch_seconds();
    EXPECT_LE(bound->batch_seconds, seconds * (1 + kRounding));
    EXPECT_LE(bound->any_order_seconds, bound->batch_seconds);
    EXPECT_GE(bound->batch_seconds, batch * seconds);
    for (const RankResult& rank : result->ranks()) {
      const double bytes = rank.peak_memory_bytes();
      EXPECT_LE(bound->peak_bytes[rank.rank()], bytes * (1 + kRounding));
      EXPECT_GE(bound->peak_bytes[rank.rank()], peak * bytes);
    }
  }
}

// Checks that a Bounder reuses results only where its inputs are the same.
TEST(BoundTest, WhatIsKeptChangesNothing) {
  Bounder bounder;
  const auto loaded = scenarios::LoadScenario("gpt3-175b-selene");
  ASSERT_TRUE(loaded.ok());
  for (int k = 0; k < 12; ++k) {
    Scenario scenario = *loaded;
    scenario.set_schedule(k % 2 == 0 ? "1f1b" : "zb-h1");
    scenario.mutable_parallelism()->set_chunks(1);
    scenario.mutable_batch()->set_microbatch_size(1 + k / 2 % 2);
    scenario.mutable_training()->set_recompute(k / 4 % 2 == 0 ? RECOMPUTE_FULL
                                                              : RECOMPUTE_NONE);
    scenario.mutable_communication()->set_gradient_reduction(
        k < 8 ? REDUCTION_BLOCKING : REDUCTION_OVERLAPPED);
    const auto resolved = scenarios::ResolveScenario("test", scenario);
    ASSERT_TRUE(resolved.ok()) << resolved.status();
    const auto kept = bounder.Bound(*resolved);
    const auto fresh = BoundOf(*resolved);
    ASSERT_TRUE(kept.ok() && fresh.ok()) << kept.status() << fresh.status();
    EXPECT_EQ(kept->batch_seconds, fresh->batch_seconds) << k;
    EXPECT_EQ(kept->any_order_seconds, fresh->any_order_seconds) << k;
    EXPECT_EQ(kept->peak_bytes, fresh->peak_bytes) << k;
  }
}

TEST(BoundTest, ScenariosAboveTheLimitOfMemoryHaveNoSeconds) {
  const auto loaded = scenarios::LoadScenario("gpt3-175b-selene");
  ASSERT_TRUE(loaded.ok());
  const auto resolved = scenarios::ResolveScenario("test", *loaded);
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  Bounder bounder;
  const auto whole = bounder.Bound(*resolved);
  ASSERT_TRUE(whole.ok()) << whole.status();
  const double peak =
      *std::max_element(whole->peak_bytes.begin(), whole->peak_bytes.end());
  const auto fits = bounder.Bound(*resolved, peak);
  const auto exceeds = bounder.Bound(*resolved, peak * (1 - 1e-9));
  ASSERT_TRUE(fits.ok() && exceeds.ok()) << fits.status() << exceeds.status();
  EXPECT_EQ(fits->batch_seconds, whole->batch_seconds);
  EXPECT_EQ(fits->any_order_seconds, whole->any_order_seconds);
  EXPECT_EQ(fits->peak_bytes, whole->peak_bytes);
  EXPECT_EQ(exceeds->batch_seconds, 0);
  EXPECT_EQ(exceeds->any_order_seconds, 0);
  EXPECT_EQ(exceeds->peak_bytes, whole->peak_bytes);
}

}  // namespace weir::sim::bound_test
