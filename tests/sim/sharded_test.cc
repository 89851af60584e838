// SPDX-License-Identifier: Apache-2.0
// Tests weights, gradients and optimizer states sharded across replicas.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "sim/simulate.h"
#include "tests/sim/by_costs.h"
#include "tests/sim/hand_schedules.h"
#include "tests/sim/measured.h"

namespace weir::sim::sharded_test {

// One stage per layer, on `num_ranks` ranks and two replicas.
scenarios::ResolvedScenario Sharded(int num_ranks, int num_stages,
                                    int num_microbatches) {
  Measured measured;
  measured.num_ranks = num_stages;  // layers
  measured.num_microbatches = num_microbatches;
  measured.num_replicas = 2;
  measured.overlapped_reduction = true;
  for (int s = 0; s < num_stages; ++s) {
    measured.forward_seconds.push_back(10);
    measured.backward_seconds.push_back(20);
    measured.activation_bytes.push_back(0);
    measured.parameter_bytes.push_back(400 * (s + 1));
  }
  scenarios::ResolvedScenario resolved =
      Resolve(measured, OneSwitch(2 * num_ranks, 100, 0));
  resolved.placement = {1, 2, num_ranks, {}};
  for (int gpu = 0; gpu < 2 * num_ranks; ++gpu) {
    resolved.placement.gpus.push_back(gpu);
  }
  resolved.scenario.mutable_training()->set_fully_sharded(true);
  return resolved;
}

// The advantage of breadth-first: two all-gathers and one reduction per chunk
// and batch, for any number of microbatches.
TEST(ShardedTest, BreadthFirstGathersTwiceWhateverTheBatch) {
  for (int num_microbatches : {1, 2, 5, 16}) {
    const Result result = RunByHand(Sharded(2, 6, num_microbatches),
                                    BreadthFirst(2, 3, num_microbatches));
    std::map<std::pair<int, int>, int> counts;  // by kind and stage
    const auto& events = result.timeline().collectives();
    for (int i = 0; i < events.gpu_size(); ++i) {
      if (events.gpu(i) < 2) ++counts[{events.kind(i), events.stage(i)}];
    }
    for (int s = 0; s < 6; ++s) {
      EXPECT_EQ((counts[{Timeline::Collectives::WEIGHT_GATHER, s}]), 2)
          << num_microbatches;
      EXPECT_EQ((counts[{Timeline::Collectives::GRADIENT_REDUCTION, s}]), 1)
          << num_microbatches;
    }
  }
}

// 1F1B alternates for every microbatch, so it gathers its weights every time.
TEST(ShardedTest, OneForwardOneBackwardGathersForEveryTurn) {
  const schedules::Schedule schedule =
      ByHand({{0}}, 3, {Actions({"0F0", "0B0", "0F1", "0B1", "0F2", "0B2"})});
  const Result result = RunByHand(Sharded(1, 1, 3), schedule);
  int gathers = 0;
  const auto& events = result.timeline().collectives();
  for (int i = 0; i < events.gpu_size(); ++i) {
    gathers += events.gpu(i) == 0 &&
               events.kind(i) == Timeline::Collectives::WEIGHT_GATHER;
  }
  EXPECT_EQ(gathers, 6);
}

// Two chunks on one rank with weights of 400 and 800 bytes, half of which come
// from the other replica at 100 bytes/s. The next all-gather overlaps with the
// passes.
//   gathers   0..2, 2..6, 12..16, 22..24
//   passes    F 2..12, F 12..22, B 22..42, B 42..62
//   reductions scatter half the gradients: 42..46, 62..64
TEST(ShardedTest, GathersRunAheadByOneRun) {
  const Result result = RunByHand(Sharded(1, 2, 1), BreadthFirst(1, 2, 1));
  const auto& actions = result.timeline().actions();
  const double starts[] = {2, 12, 22, 42};
  for (int i = 0; i < 4; ++i) {
    EXPECT_NEAR(actions.start_seconds(i), starts[i], 1e-9);
  }
  std::map<double, double>
      spans[Timeline::Collectives::Kind_ARRAYSIZE];  // by kind
  const auto& events = result.timeline().collectives();
  for (int i = 0; i < events.gpu_size(); ++i) {
    if (events.gpu(i) != 0) continue;
    spans[events.kind(i)][events.start_seconds(i)] = events.end_seconds(i);
  }
  const std::map<double, double> gathers = {{0, 2}, {2, 6}, {12, 16}, {22, 24}};
  ASSERT_EQ(spans[Timeline::Collectives::WEIGHT_GATHER].size(), gathers.size());
  for (auto [a, b] =
           std::pair(spans[Timeline::Collectives::WEIGHT_GATHER].begin(),
                     gathers.begin());
       b != gathers.end(); ++a, ++b) {
    EXPECT_NEAR(a->first, b->first, 1e-9);
    EXPECT_NEAR(a->second, b->second, 1e-9);
  }
  EXPECT_NEAR(result.makespan_seconds(), 64, 1e-9);
  EXPECT_NEAR(result.ranks(0).exposed_communication_seconds(), 2 + 2, 1e-9);
}

TEST(ShardedTest, MemoryIsDividedButForWhatIsInUse) {
  const Result result = RunByHand(Sharded(1, 2, 1), BreadthFirst(1, 2, 1));
  std::map<std::string, double> classes;
  for (const MemoryClass& entry : result.ranks(0).peak_memory_classes()) {
    classes[entry.name()] = entry.bytes();
  }
  // During the backward of the second chunk: its full weights, those of the
  // first chunk for the next run, and its gradients.
  EXPECT_EQ(classes["weights"], (400 + 800) / 2);
  EXPECT_EQ(classes["optimizer_state"], 2 * (400 + 800) / 2);
  EXPECT_EQ(classes["gradients"], (400 + 800) / 2 + 800);
  EXPECT_EQ(classes["gathered_weights"], 400 + 800);
  EXPECT_NEAR(result.ranks(0).peak_memory_at_seconds(), 22, 1e-9);
  const auto& memory = result.timeline().memory();
  EXPECT_EQ(memory.bytes(memory.bytes_size() - 1), 600 + 600 + 1200);
}

// An optimizer step processes only the replica's shard.
TEST(ShardedTest, StepsTakeTheirShareOfTheTime) {
  scenarios::ResolvedScenario scenario = Sharded(1, 1, 1);
  scenario.device.mutable_memory_bytes_per_second()->set_value(100);
  const schedules::Schedule schedule = BreadthFirst(1, 1, 1);
  const double sharded = RunByHand(scenario, schedule).makespan_seconds();
  // All-gathers of 2 s (the second overlaps with the forward), a reduction of 2
  // s. The step moves gradients, states twice, weights twice: half of 7 x 400
  // bytes.
  EXPECT_NEAR(sharded, 2 + 30 + 2 + 7 * 400 / 2.0 / 100, 1e-9);
}

// One rank, two replicas. An all-gather of 800 bytes transfers half: 4 s.
ByCosts Layers(double forward_seconds, double backward_seconds,
               int num_layers) {
  ByCosts run{.schedule = OnePass(),
              .costs = OneStage(forward_seconds, backward_seconds),
              .data = 2};
  StageCosts& stage = run.costs.stages[0];
  stage.parameters.weight_bytes = 800;
  stage.parameters.gradient_bytes = 800;
  stage.parameters.num_layers = num_layers;
  run.costs.shards = 2;
  return run;
}

// Exposes all gathers, `calls` of them per layer.
void SetExposed(double calls, ByCosts* run) {
  run->costs.shard_calls.forward = run->costs.shard_calls.backward = {
      .calls = calls, .exposed_calls = calls, .exposed_bytes = 1};
}

// A pass waits for its first layer. The other layers are gathered during the
// pass, which ends when both the pass and the gathers are done. The first layer
// of the next pass is then gathered, or earlier if the links are free.
TEST(ShardedTest, LayersComeBesideThePass) {
  for (int num_layers : {1, 2, 4, 8}) {
    const double first = 4.0 / num_layers, others = 4 - first;
    for (double forward : {0.5, 2.0, 3.0, 10.0}) {
      for (double backward : {0.5, 3.0, 20.0}) {
        ByCosts run = Layers(forward, backward, num_layers);
        run.costs.stages[0].parameters.gradient_bytes =
            0;  // keeps the links free
        const CostsRun result(run);
        const double forward_end = first + std::max(forward, others);
        EXPECT_NEAR(result.Start(0, 0), first, 1e-9);
        EXPECT_NEAR(result.End(0, 0), forward_end, 1e-9);
        // The all-gather of the backward's first layer follows the last of
        // these.
        const double ready = first + others + first;
        const double start = std::max(forward_end, ready);
        EXPECT_NEAR(result.Start(0, 1), start, 1e-9);
        EXPECT_NEAR(result.End(0, 1), start + std::max(backward, others), 1e-9);
        const GpuTimes times = result.Times(0);
        EXPECT_NEAR(times.busy_seconds, forward + backward, 1e-9);
        const auto gathers =
            result.Events(0, Timeline::Collectives::WEIGHT_GATHER);
        EXPECT_EQ(gathers.size(), num_layers > 1 ? 4u : 2u);
        double bytes = 0;
        for (const CollectiveEvent& event : gathers) bytes += event.bytes;
        EXPECT_NEAR(bytes, 2 * 800, 1e-9);
      }
    }
  }
}

// Each pass waits for its own gathers, which begin when the pass before it has
// ended.
TEST(ShardedTest, BlockingGathersOverlapWithNothing) {
  for (int num_layers : {1, 4}) {
    ByCosts run = Layers(10, 20, num_layers);
    SetExposed(1, &run);
    run.costs.stages[0].parameters.gradient_bytes = 0;
    const CostsRun result(run);
    EXPECT_NEAR(result.Start(0, 0), 4, 1e-9);
    EXPECT_NEAR(result.End(0, 0), 14, 1e-9);
    EXPECT_NEAR(result.Start(0, 1), 18, 1e-9);
    EXPECT_NEAR(result.End(0, 1), 38, 1e-9);
    EXPECT_NEAR(result.Times(0).exposed_gather_seconds, 8, 1e-9);
  }
}

// A collective has its latency; the bytes stay the same.
TEST(ShardedTest, GathersByMatrixHaveTheirLatencies) {
  for (const int per_layer : {1, 4}) {
    ByCosts run = Layers(10, 20, 2);
    run.cluster = OneSwitch(2, 100, 0.001);
    SetExposed(per_layer, &run);
    EXPECT_NEAR(CostsRun(run).Start(0, 0), 4 + 2 * per_layer * 0.001, 1e-9);
  }
}

// Half of the other layers is gathered before the pass, half during it.
TEST(ShardedTest, SomeGathersAreExposed) {
  ByCosts run = Layers(10, 20, 4);
  run.costs.shard_calls.forward = {
      .calls = 2, .exposed_calls = 1, .exposed_bytes = 0.5};
  // The backward gathers everything but the first layer twice.
  run.costs.shard_calls.backward = {.calls = 2, .bytes = 2};
  const CostsRun result(run);
  EXPECT_NEAR(result.Start(0, 0), 1 + 1.5, 1e-9);
  EXPECT_NEAR(result.End(0, 0), 12.5, 1e-9);
  const auto gathers = result.Events(0, Timeline::Collectives::WEIGHT_GATHER);
  ASSERT_EQ(gathers.size(), 4u);
  EXPECT_NEAR(gathers[0].bytes, 500, 1e-9);
  EXPECT_NEAR(gathers[1].bytes, 300, 1e-9);
  EXPECT_NEAR(gathers[2].bytes, 200, 1e-9);
  EXPECT_NEAR(gathers[3].bytes, 1200, 1e-9);
}

// While an exposed gather runs, the host launches the copies of its list.
TEST(ShardedTest, ExposedGathersTakeAsLongAsTheirLists) {
  for (const double seconds : {0.1, 7.0}) {
    ByCosts run = Layers(10, 20, 2);
    SetExposed(1, &run);
    run.costs.shard_calls.list_seconds = seconds;
    EXPECT_NEAR(CostsRun(run).Start(0, 0), std::max(4.0, seconds), 1e-9);
  }
}

// The backward ends before its gradients are reduced, matrices and small
// tensors one by one, after the host has launched all copies.
TEST(ShardedTest, BlockingReductionsFollowTheBackward) {
  ByCosts run = Layers(10, 20, 4);
  run.cluster = OneSwitch(2, 100, 0.001);
  ShardCalls& calls = run.costs.shard_calls;
  calls.reductions = 3;
  calls.small_reductions = 5;
  calls.small_part = 0.25;
  calls.blocking_reductions = true;
  calls.list_seconds = 0.1;
  const CostsRun result(run);
  const auto reductions =
      result.Events(0, Timeline::Collectives::GRADIENT_REDUCTION);
  ASSERT_EQ(reductions.size(), 1u);
  EXPECT_NEAR(reductions[0].start, result.End(0, 1), 1e-9);
  EXPECT_NEAR(reductions[0].end - reductions[0].start,
              4 + 4 * (3 + 5) * (0.1 + 0.001), 1e-9);
}

// A pass that is longer than its all-gathers hides all but that of the first
// layer.
TEST(ShardedTest, LongPassesHideAllButTheFirstLayer) {
  const CostsRun result(Layers(10, 20, 4));
  EXPECT_NEAR(result.End(0, 1), 1 + 10 + 20, 1e-9);
  EXPECT_NEAR(result.Times(0).exposed_gather_seconds, 1, 1e-9);
  // Four layers are reduced as their gradients are computed, in 1 s each; the
  // last one after the backward.
  const auto reductions =
      result.Events(0, Timeline::Collectives::GRADIENT_REDUCTION);
  ASSERT_EQ(reductions.size(), 4u);
  const double starts[] = {16, 21, 26, 31};
  for (int i = 0; i < 4; ++i) {
    EXPECT_NEAR(reductions[i].start, starts[i], 1e-9);
    EXPECT_NEAR(reductions[i].end, starts[i] + 1, 1e-9);
  }
  EXPECT_NEAR(result.Makespan(), 32, 1e-9);
}

// A forward starts with the embedding, a backward with the head.
TEST(ShardedTest, TheFirstLayerOfAPassHasItsOwnSize) {
  ByCosts run = Layers(10, 20, 4);
  run.costs.stages[0].parameters.layers = {
      .first = 100, .last = 500, .two = 600};
  const CostsRun result(run);
  EXPECT_NEAR(result.Start(0, 0), 0.5, 1e-9);
  const auto gathers = result.Events(0, Timeline::Collectives::WEIGHT_GATHER);
  ASSERT_EQ(gathers.size(), 4u);
  EXPECT_EQ(gathers[0].bytes, 100);
  EXPECT_EQ(gathers[1].bytes, 700);
  EXPECT_EQ(gathers[2].bytes, 500);
  EXPECT_EQ(gathers[3].bytes, 300);
}

// Both passes of a pair end when the layers of both have been gathered.
TEST(ShardedTest, PairsWaitForTheLayersOfBoth) {
  for (bool forward_first : {false, true}) {
    ByCosts run = Layers(0.5, 0.5, 4);
    run.schedule =
        ByHand({{0}}, 2,
               {forward_first ? Actions({"0F0", "0F1&", "0B0", "0B1"})
                              : Actions({"0F0", "0B0&", "0F1", "0B1"})});
    const CostsRun result(run);
    EXPECT_EQ(result.End(0, 1), result.End(0, 2));
    EXPECT_GE(result.End(0, 1), result.Start(0, 1) + 3 - 1e-9);
  }
}

// Waiting for collectives of the tensor group and for all-gathers of layers are
// separate.
TEST(ShardedTest, WhatAPassWaitsForIsNamed) {
  ByCosts run = Layers(1, 20, 4);
  run.tensor = 2;
  run.costs.stages[0].communication.forward_collectives = {{.bytes = 100}};
  const CostsRun result(run);
  // The forward takes 1 s and its all-reduce 1 s or more, as all-gathers of 3 s
  // share the links of the switch.
  const GpuTimes times = result.Times(0);
  EXPECT_NEAR(times.busy_seconds, 21 + times.tensor_collective_seconds, 1e-9);
  EXPECT_GE(times.tensor_collective_seconds, 1 - 1e-9);
  EXPECT_NEAR(times.exposed_gather_seconds,
              result.Start(0, 1) - result.Start(0, 0) - 1 -
                  times.tensor_collective_seconds + result.Start(0, 0),
              1e-9);
}

// Without a pipeline, only the current layer and the next are gathered.
TEST(ShardedTest, WithoutAPipelineTwoLayersAreGathered) {
  const CostsRun result(Layers(10, 20, 8));
  EXPECT_EQ(result.PeakOf(0, MemoryClass::WEIGHTS), 400);
  EXPECT_EQ(result.PeakOf(0, MemoryClass::GATHERED_WEIGHTS), 200);
  // Shards of all layers, and two layers in flight.
  EXPECT_EQ(result.PeakOf(0, MemoryClass::GRADIENTS), 400 + 200);
  // Two microbatches are accumulated before the reduction.
  ByCosts two = Layers(10, 20, 8);
  two.schedule = ByHand({{0}}, 2, {Actions({"0F0", "0B0", "0F1", "0B1"})});
  EXPECT_EQ(CostsRun(two).PeakOf(0, MemoryClass::GRADIENTS), 400 + 800);
  EXPECT_EQ(CostsRun(two).PeakOf(0, MemoryClass::GATHERED_WEIGHTS), 200);
  // FSDP without no_sync reduces them after each microbatch.
  two.costs.shards_each_gradient = true;
  EXPECT_EQ(CostsRun(two).PeakOf(0, MemoryClass::GRADIENTS), 400 + 200);
}

// In a pipeline, a run keeps its whole stage, and the stage of the next run is
// gathered concurrently.
TEST(ShardedTest, InAPipelineTheRunsStageIsGathered) {
  ByCosts run = Layers(10, 20, 8);
  run.schedule =
      ByHand({{0, 1}}, 1, {Actions({"0F0", "0B0"}), Actions({"1F0", "1B0"})});
  run.costs.stages.push_back(run.costs.stages[0]);
  EXPECT_EQ(CostsRun(run).PeakOf(0, MemoryClass::GATHERED_WEIGHTS), 2 * 800);
  // Larger gradients move the peak to the backward.
  for (StageCosts& stage : run.costs.stages)
    stage.parameters.gradient_bytes = 1600;
  const CostsRun result(run);
  EXPECT_EQ(result.PeakOf(0, MemoryClass::GATHERED_WEIGHTS), 800);
  EXPECT_EQ(result.PeakOf(0, MemoryClass::GRADIENTS), 800 + 1600);
}

// Gradients are reduced layer by layer in either mode.
TEST(ShardedTest, BlockingReductionsAreNotForShards) {
  ByCosts blocking = Layers(10, 20, 4), overlapped = blocking;
  overlapped.overlapped_reduction = true;
  EXPECT_EQ(CostsRun(blocking).Makespan(), CostsRun(overlapped).Makespan());
}

}  // namespace weir::sim::sharded_test
