// SPDX-License-Identifier: Apache-2.0
// Tests gradient buckets, a sharded optimizer, expert gradients, and embeddings
// shared by two stages. The costs are given by hand, on a switch of 100
// bytes/s: an all-reduce of n GPUs takes 2 (n - 1) / n * bytes / 100 seconds, a
// reduce-scatter or an all-gather half of that.
#include <gtest/gtest.h>

#include <random>

#include "tests/sim/by_costs.h"

namespace weir::sim::reductions_test {

constexpr auto kGradient = Timeline::Collectives::GRADIENT_REDUCTION;
constexpr auto kWeights = Timeline::Collectives::WEIGHT_GATHER;
constexpr auto kTied = Timeline::Collectives::TIED_REDUCTION;

// Two replicas: forward 0..1, backward 1..9, gradients of 800 bytes.
ByCosts Reduced(double bucket_bytes, bool overlapped = true) {
  ByCosts run{.schedule = OnePass(),
              .costs = OneStage(1, 8),
              .data = 2,
              .overlapped_reduction = overlapped};
  run.costs.stages[0].parameters.gradient_bytes = 800;
  run.costs.bucket_bytes = bucket_bytes;
  return run;
}

// A bucket is full after every eighth of the backward.
TEST(ReductionsTest, BucketsAreReducedAsTheBackwardCompletesThem) {
  const CostsRun result(Reduced(100));
  const auto events = result.Events(0, kGradient);
  ASSERT_EQ(events.size(), 8u);
  double bytes = 0;
  for (int i = 0; i < 8; ++i) {
    EXPECT_NEAR(events[i].start, 2 + i, 1e-9);
    EXPECT_NEAR(events[i].end, 3 + i, 1e-9);
    bytes += events[i].bytes;
  }
  EXPECT_EQ(bytes, 800);
  EXPECT_NEAR(result.Makespan(), 10, 1e-9);
  EXPECT_NEAR(result.Times(0).exposed_reduction_seconds, 1, 1e-9);
}

// With slower links, a bucket waits for the previous one.
TEST(ReductionsTest, BucketsFollowEachOther) {
  ByCosts run = Reduced(400);
  run.costs.stages[0].parameters.gradient_bytes = 1600;
  const auto events = CostsRun(run).Events(1, kGradient);
  ASSERT_EQ(events.size(), 4u);
  const double starts[] = {3, 7, 11, 15};
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(events[i].start, starts[i], 1e-9);
}

TEST(ReductionsTest, OneBucketAndBlockingFollowTheBackward) {
  for (const ByCosts& run : {Reduced(800), Reduced(1e9), Reduced(0),
                             Reduced(100, /*overlapped=*/false)}) {
    const CostsRun result(run);
    const auto events = result.Events(0, kGradient);
    ASSERT_EQ(events.size(), 1u);
    EXPECT_NEAR(events[0].start, 9, 1e-9);
    EXPECT_NEAR(result.Makespan(), 17, 1e-9);
    EXPECT_NEAR(result.Times(1).exposed_reduction_seconds, 8, 1e-9);
  }
}

// Calls have no fixed cost here.
TEST(ReductionsTest, BucketsNeverEndLaterNorBeforeTheirBytesAreThrough) {
  std::mt19937 random(7);
  const auto draw = [&](double low, double high) {
    return std::uniform_real_distribution<>(low, high)(random);
  };
  for (int i = 0; i < 50; ++i) {
    ByCosts run = Reduced(draw(1, 1000));
    run.costs.stages[0].seconds.backward = draw(0.5, 20);
    run.costs.stages[0].parameters.gradient_bytes = std::round(draw(1, 3000));
    run.data = 2 + i % 3;
    const CostsRun result(run);
    ByCosts one = run;
    one.costs.bucket_bytes = 0;
    // Each of eight pieces is rounded to whole bytes per hop.
    const double tolerance = 8 / 100.0;
    EXPECT_LE(result.Makespan(), CostsRun(one).Makespan() + tolerance);
    const auto events = result.Events(0, kGradient);
    const double backward_end = 1 + run.costs.stages[0].seconds.backward;
    EXPECT_GE(events.back().start, backward_end - 1e-9);
    EXPECT_GE(events.front().start, 1);
    double bytes = 0, seconds = 0;
    for (const CollectiveEvent& event : events) {
      bytes += event.bytes;
      seconds += event.end - event.start;
    }
    EXPECT_NEAR(bytes, run.costs.stages[0].parameters.gradient_bytes,
                1e-9 * bytes);
    EXPECT_NEAR(seconds, 2.0 * (run.data - 1) / run.data * bytes / 100,
                tolerance);
  }
}

// With more buckets than pieces, each piece represents several buckets, with
// their latencies.
TEST(ReductionsTest, EveryBucketHasItsLatency) {
  ByCosts run = Reduced(10);
  run.cluster = OneSwitch(2, 100, 0.001);
  const auto events = CostsRun(run).Events(0, kGradient);
  ASSERT_EQ(events.size(), 8u);
  for (const CollectiveEvent& event : events) {
    EXPECT_NEAR(event.end - event.start, 1 + 10 * 2 * 0.001, 1e-9);
  }
}

// Reduce-scatter 4 s, optimizer step, all-gather 2 s.
TEST(ReductionsTest, AShardedOptimizerScattersAndGathers) {
  for (bool overlapped : {false, true}) {
    ByCosts run = Reduced(0, overlapped);
    run.costs.optimizer_shards = 2;
    run.costs.stages[0].parameters.weight_bytes = 400;
    run.costs.stages[0].parameters.optimizer_state_bytes = 1200;
    run.costs.stages[0].step.seconds = 0.5;
    const CostsRun result(run);
    EXPECT_NEAR(result.StepStart(0, 0), 9 + 4, 1e-9);
    EXPECT_NEAR(result.Makespan(), 13.5 + 2, 1e-9);
    EXPECT_NEAR(result.Times(1).exposed_reduction_seconds, 4, 1e-9);
    EXPECT_NEAR(result.Times(1).exposed_gather_seconds, 2, 1e-9);
    EXPECT_EQ(result.PeakOf(0, MemoryClass::OPTIMIZER_STATE), 600);
    EXPECT_EQ(result.PeakOf(0, MemoryClass::WEIGHTS), 400);
    EXPECT_EQ(result.PeakOf(0, MemoryClass::GRADIENTS), 800);
    const auto gathers = result.Events(1, kWeights);
    ASSERT_EQ(gathers.size(), 1u);
    EXPECT_EQ(gathers[0].bytes, 400);
    EXPECT_NEAR(gathers[0].start, 13.5, 1e-9);
  }
}

// Ranks that own whole matrices: an all-reduce of 8 s, and one broadcast for
// every rank with a matrix, 2 s together.
TEST(ReductionsTest, OwnersBroadcastTheirMatrices) {
  for (const auto& [matrices, calls] : {std::pair(1, 1), std::pair(3, 2)}) {
    ByCosts run = Reduced(0, /*overlapped=*/false);
    run.cluster = OneSwitch(2, 100, 0.001);
    run.costs.optimizer_shards = 2;
    run.costs.owned_matrices_per_layer = matrices;
    run.costs.stages[0].parameters.weight_bytes = 400;
    run.costs.stages[0].step.seconds = 0.5;
    const CostsRun result(run);
    EXPECT_NEAR(result.StepStart(0, 0), 9 + 8 + 2 * 0.001, 1e-9);
    EXPECT_NEAR(result.Makespan(), 17.502 + 2 + calls * 0.001, 1e-9);
  }
}

// The gather of the previous step's weights, 8 s, overlaps with the batch: the
// forward waits for the first of two buckets, the backward for both.
TEST(ReductionsTest, AnEarlyGatherOverlapsWithTheForward) {
  for (const double forward : {1.0, 3.0, 7.0}) {
    for (const double num_buckets : {1.0, 2.0, 4.0}) {
      ByCosts run = Reduced(800 / num_buckets, /*overlapped=*/false);
      run.costs.optimizer_shards = 2;
      run.costs.overlaps_step_gather = true;
      run.costs.stages[0].seconds.forward = forward;
      run.costs.stages[0].parameters.weight_bytes = 1600;
      run.costs.stages[0].step.seconds = 0.5;
      const CostsRun result(run);
      const double first = 8 / num_buckets;
      const double backward = std::max(first + forward, 8.0);
      EXPECT_NEAR(result.Start(0, 0), first, 1e-9);
      EXPECT_NEAR(result.Start(0, 1), backward, 1e-9);
      EXPECT_NEAR(result.Makespan(), backward + 8 + 4 + 0.5, 1e-9);
      const GpuTimes times = result.Times(0);
      EXPECT_NEAR(times.exposed_gather_seconds, backward - forward, 1e-9);
      EXPECT_NEAR(times.bubble_seconds, 0, 1e-9);
    }
  }
}

// Both ranks hold both stages: gradients are summed over four copies, and the
// replicas of each rank share its optimizer step.
TEST(ReductionsTest, CopiesOnOtherRanksGatherTheirOwnSteps) {
  ByCosts run{.schedule = TwoDirections(), .costs = OneStage(1, 2), .data = 2};
  run.costs.stages[0].parameters.gradient_bytes = 800;
  run.costs.stages[0].parameters.weight_bytes = 400;
  run.costs.stages.push_back(run.costs.stages[0]);
  run.costs.optimizer_shards = 2;
  const CostsRun result(run);
  for (uint32_t gpu : {0, 1, 2, 3}) {
    EXPECT_EQ(result.Events(gpu, kGradient).size(), 2u);
    EXPECT_EQ(result.Events(gpu, kWeights).size(), 2u);
  }
}

// 300 of the 800 bytes belong to experts, each of which two of the four
// replicas hold.
TEST(ReductionsTest, ExpertsAddUpOverTheReplicasThatHaveThem) {
  ByCosts run{.schedule = OnePass(), .costs = OneStage(1, 2), .data = 4};
  StageCosts& stage = run.costs.stages[0];
  stage.parameters.gradient_bytes = 800;
  stage.parameters.expert_gradient_bytes = 300;
  run.costs.expert_parallel = 2;
  const double dense = 1.5 * 500 / 100, experts = 300.0 / 100;
  EXPECT_NEAR(CostsRun(run).Makespan(), 3 + dense + experts, 1e-9);
  // One copy of each: no reduction.
  run.costs.expert_parallel = 4;
  EXPECT_NEAR(CostsRun(run).Makespan(), 3 + dense, 1e-9);
  // A sharded optimizer: half of both, and the weights likewise.
  run.costs.expert_parallel = 2;
  run.costs.optimizer_shards = 4;
  stage.parameters.weight_bytes = 400;
  stage.parameters.optimizer_state_bytes = 1600;
  const CostsRun result(run);
  EXPECT_NEAR(result.Makespan(), 3 + 1.5 * (dense + experts) / 2, 0.02);
  // 5/8 of the states over four replicas, 3/8 over two.
  EXPECT_EQ(result.PeakOf(0, MemoryClass::OPTIMIZER_STATE), 250 + 300);
}

// Two stages on two ranks, each with an embedding of 100 bytes.
ByCosts Tied() {
  ByCosts run{
      .schedule = ByHand({{0, 1}}, 1,
                         {Actions({"0F0", "0B0"}), Actions({"1F0", "1B0"})}),
      .costs = OneStage(1, 2)};
  run.costs.stages[0].step.seconds = 0.5;
  run.costs.stages.push_back(run.costs.stages[0]);
  run.costs.tied_gradient_bytes = 100;
  run.costs.tied_stage = 1;
  return run;
}

TEST(ReductionsTest, TiedEmbeddingsAddUpBeforeBothSteps) {
  const CostsRun result(Tied());
  // The backwards end at 4 and at 6.
  for (int gpu : {0, 1}) {
    EXPECT_NEAR(result.StepStart(gpu, 0), 6 + 1, 1e-9);
    const auto events = result.Events(gpu, kTied);
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(events[0].bytes, 100);
    EXPECT_NEAR(events[0].start, 6, 1e-9);
    EXPECT_NEAR(events[0].end, 7, 1e-9);
    EXPECT_NEAR(result.Times(gpu).exposed_reduction_seconds, 1, 1e-9);
  }
}

// The reduction follows that of the replicas, which takes 4 s for 400 bytes.
TEST(ReductionsTest, TiedEmbeddingsFollowTheReplicas) {
  ByCosts run = Tied();
  run.data = 2;
  for (StageCosts& stage : run.costs.stages)
    stage.parameters.gradient_bytes = 400;
  const CostsRun result(run);
  for (int gpu : {0, 1, 2, 3}) {
    EXPECT_NEAR(result.StepStart(gpu, 0), 6 + 4 + 1, 1e-9);
  }
}

TEST(ReductionsTest, NothingIsTiedWithinARankOrWithoutFlush) {
  ByCosts one_rank = Tied();
  one_rank.schedule =
      ByHand({{0, 0}}, 1, {Actions({"0F0", "1F0", "1B0", "0B0"})});
  EXPECT_NEAR(CostsRun(one_rank).Makespan(), 6 + 1, 1e-9);
  ByCosts no_flush = Tied();
  no_flush.schedule.flush = false;
  EXPECT_TRUE(CostsRun(no_flush).Events(0, kTied).empty());
  ByCosts one_stage{.schedule = OnePass(), .costs = OneStage(1, 2)};
  one_stage.costs.tied_gradient_bytes = 100;
  EXPECT_NEAR(CostsRun(one_stage).Makespan(), 3, 1e-9);
}

}  // namespace weir::sim::reductions_test
