// SPDX-License-Identifier: Apache-2.0
// Tests partitions of a physical GPU: passes and optimizer steps are slower
// while other partitions compute.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/cluster/cluster.h"
#include "sim/engine/engine.h"
#include "sim/simulate.h"
#include "tests/fluid.h"
#include "tests/sim/by_costs.h"
#include "tests/sim/measured.h"

namespace weir::sim::gpu_sharing_test {

PartitionSlowdown ShareOf(int num_partitions, double forward,
                          double backward_input, double backward_weight,
                          double optimizer = 1) {
  PartitionSlowdown share;
  share.set_num_partitions(num_partitions);
  share.set_multiprocessors(32);
  const std::pair<const char*, double> factors[] = {
      {"forward", forward},
      {"backward_input", backward_input},
      {"backward_weight", backward_weight},
      {"optimizer", optimizer}};
  for (const auto& [pass, factor] : factors) {
    PartitionSlowdown::Slowdown* slowdown = share.add_slowdowns();
    slowdown->set_pass(pass);
    slowdown->set_active(2);
    slowdown->set_factor(factor);
  }
  return share;
}

// Six GPUs, of which four are partitions of one physical GPU and two of
// another, each with one kernel flow and one copy flow.
struct RandomGraph {
  static constexpr int kGpus = 6;

  explicit RandomGraph(int seed) : random(seed) {
    for (int gpu = 0; gpu < kGpus; ++gpu) {
      factors.push_back({Uniform(1, 2), Uniform(1, 2), gpu < 4 ? 0 : 1});
      graph.slowdowns.factors.push_back(
          {factors[gpu].kernels, factors[gpu].copies});
      graph.slowdowns.physical_gpu.push_back(factors[gpu].gpu);
    }
    for (int pair = 0; pair < 2 * kGpus; ++pair) {
      links.push_back({"link", 1e9});
      graph.pairs.push_back({pair % kGpus, kGpus + pair, {{pair}, 0}});
      graph.slowdowns.touches.push_back(
          {pair < kGpus ? Mover::kKernels : Mover::kCopies, {pair % kGpus}});
    }
    for (int curve = 0; curve < 3; ++curve) {
      std::vector<double> by_parts = {1};
      while (by_parts.size() < 4) by_parts.push_back(Uniform(0.9, 2.5));
      graph.slowdowns.curves.push_back(by_parts);
    }
    std::vector<int> last(size_t{2} * kGpus,
                          -1);  // one flow of a pair at a time
    for (int i = 0; i < 40; ++i) AddTask(i, &last);
    graph.Finish();
  }

  double Uniform(double low, double high) {
    return std::uniform_real_distribution<>(low, high)(random);
  }

  void AddTask(int i, std::vector<int>* last) {
    fluid::Task task;
    task.seconds = std::round(Uniform(0.05, 1) * 1e9) / 1e9;
    const int gpu = static_cast<int>(random() % kGpus);
    const int kind = static_cast<int>(random() % 8);
    Slowdowns::Timer timer;
    int pair = -1;
    if (kind >= 6) {
      task.copies = kind == 7;
      task.moves = {gpu};
      pair = gpu + (task.copies ? kGpus : 0);
      graph.AddFlow(pair, std::round(1e9 * task.seconds));
    } else {
      graph.AddTimer(task.seconds);
    }
    if (kind < 5) {
      task.gpu = timer.gpu = gpu;
      task.by_flows = timer.by_flows = random() % 3 > 0;
      timer.curve = static_cast<int>(random() % 4) - 1;
      if (timer.curve >= 0) {
        task.by_parts = graph.slowdowns.curves[timer.curve];
      }
    }
    graph.slowdowns.timers.push_back(timer);
    if (pair >= 0) {
      if ((*last)[pair] >= 0) task.after.push_back((*last)[pair]);
      (*last)[pair] = i;
    }
    for (int before = 0; before < i; ++before) {
      if (random() % 16 == 0) task.after.push_back(before);
    }
    for (int before : task.after) graph.AddEdge(before, i);
    tasks.push_back(task);
  }

  std::mt19937 random;
  TaskGraph graph;
  std::vector<scenarios::Link> links;
  std::vector<fluid::Task> tasks;
  std::vector<fluid::Factors> factors;
};

TEST(GpuSharingTest, EqualsTheFluidOracle) {
  int slower = 0;
  for (int seed = 0; seed < 200; ++seed) {
    const RandomGraph random(seed);
    const auto recording = RunTaskGraph(random.graph, random.links);
    ASSERT_TRUE(recording.ok()) << recording.status();
    const auto expected = fluid::EndSeconds(random.tasks, random.factors);
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(recording->end_seconds()[i], expected[i], 1e-9 * expected[i])
          << "graph " << seed << " task " << i;
      slower += recording->sharing_seconds()[i] > 1e-3;
    }
  }
  EXPECT_GT(slower, 1000);  // of 8000
}

// Without flows, sharing is the only reason for a longer timer.
TEST(GpuSharingTest, WhatPartsAddIsRecorded) {
  for (int seed = 0; seed < 20; ++seed) {
    RandomGraph random(seed);
    std::fill(random.graph.slowdowns.factors.begin(),
              random.graph.slowdowns.factors.end(),
              std::array<double, 2>{1, 1});
    const auto recording = RunTaskGraph(random.graph, random.links);
    ASSERT_TRUE(recording.ok()) << recording.status();
    for (int32_t i = 0; i < random.graph.num_tasks(); ++i) {
      if (random.graph.slowdowns.timers[i].gpu < 0) continue;
      ASSERT_NEAR(recording->sharing_seconds()[i],
                  recording->end_seconds()[i] - recording->start_seconds()[i] -
                      random.graph.amount(i),
                  1e-12);
    }
  }
}

// Returns the makespan of `num_replicas` partitions that all run one replica of
// a single stage, without gradients.
double MakespanOfReplicas(int num_replicas, const PartitionSlowdown& share) {
  ByCosts run = {.schedule = OnePass(), .costs = OneStage(1, 3)};
  run.data = num_replicas;
  run.costs.stages[0].step.seconds = 0.5;
  run.costs.partition_slowdown = &share;
  return CostsRun(run).Makespan();
}

TEST(GpuSharingTest, PartsThatAreAlwaysBusyTakeTheirFactorAndOneAloneNone) {
  // The backward is a single pass: one third for inputs, two thirds for
  // weights.
  const PartitionSlowdown share = ShareOf(4, 1.5, 1.2, 1.35, 1.8);
  EXPECT_EQ(MakespanOfReplicas(1, share), 4.5);
  EXPECT_NEAR(MakespanOfReplicas(2, share), 1.5 + 3 * 1.3 + 0.5 * 1.8, 1e-12);
  // Beyond the largest measured number of partitions, the factor is constant.
  EXPECT_NEAR(MakespanOfReplicas(4, share), 1.5 + 3 * 1.3 + 0.5 * 1.8, 1e-12);
  // Eight GPUs are four partitions each of two physical GPUs.
  EXPECT_NEAR(MakespanOfReplicas(8, share), 1.5 + 3 * 1.3 + 0.5 * 1.8, 1e-12);
  // Three of four: interpolated linearly between one partition and all.
  PartitionSlowdown four = share;
  four.mutable_slowdowns(0)->set_active(4);
  EXPECT_NEAR(MakespanOfReplicas(3, four), 1 + 0.5 * 2 / 3 + 3 * 1.3 + 0.9,
              1e-12);
}

TEST(GpuSharingTest, PassesThatWereNotMeasuredTakeNoLonger) {
  PartitionSlowdown share = ShareOf(2, 1.5, 1.2, 1.35, 1.8);
  share.clear_slowdowns();
  EXPECT_EQ(MakespanOfReplicas(2, share), 4.5);
}

TEST(GpuSharingTest, APairCountsOnceAndGoesAtTheSpeedOfItsBackward) {
  const PartitionSlowdown share = ShareOf(2, 1.9, 1.3, 1.3);
  ByCosts run = {
      .schedule = ByHand({{0}}, 2, {Actions({"0F0", "0F1&", "0B0", "0B1"})}),
      .costs = OneStage(1, 2)};
  run.costs.stages[0].seconds.overlapped = 2.5;
  run.costs.partition_slowdown = &share;
  EXPECT_NEAR(CostsRun(run).Makespan(), 1 + 2.5 + 2, 1e-12);
  run.data = 2;
  const CostsRun both(run);
  EXPECT_NEAR(both.Makespan(), 1.9 + 1.3 * (2.5 + 2), 1e-12);
  for (int position : {1, 2}) {  // they end together
    EXPECT_NEAR(both.End(0, position), 1.9 + 1.3 * 2.5, 1e-12);
  }
}

// Two stages with forwards of 1 and 2 s and backwards of 3 and 2 s.
scenarios::ResolvedScenario TwoStages(const Cluster& cluster) {
  Measured measured;
  measured.num_ranks = measured.num_microbatches = 2;
  measured.forward_seconds = {1, 2};
  measured.backward_seconds = {3, 2};
  measured.activation_bytes = {0, 0};
  scenarios::ResolvedScenario resolved = Resolve(measured, cluster);
  *resolved.device.mutable_partition_slowdown() = ShareOf(4, 1.5, 1.2, 1.3);
  return resolved;
}

double PartOf(const Result& result, const char* name) {
  for (const PartSeconds& part : result.parts()) {
    if (part.name() == name) return part.seconds();
  }
  return 0;
}

TEST(GpuSharingTest, GPipeByHandWithItsDrainTimedAnew) {
  const auto result = Simulate(TwoStages(OneSwitch(4, 1e9, 0)));
  ASSERT_TRUE(result.ok()) << result.status();
  // Rank 0: F 0..1, then F 1..2.5 concurrently with rank 1's first F, which has
  // 1 s left at 2.5. Rank 1: F 1..3.5, F 3.5..5.5, B 5.5..7.5, then B 7.5..10
  // concurrently with rank 0's first B (both 1.25 times as long), which has 1 s
  // left at 10. Rank 0: B 7.5..11, B 11..14.
  EXPECT_NEAR(result->makespan_seconds(), 14, 1e-9);
  EXPECT_NEAR(PartOf(*result, "card_sharing"), 1, 1e-9);
  EXPECT_EQ(PartOf(*result, "overlap_slowdown"), 0);
  double sum = 0;
  for (const PartSeconds& part : result->parts()) sum += part.seconds();
  EXPECT_NEAR(sum, result->batch_seconds(), 1e-9);
}

TEST(GpuSharingTest, AFactorOfOneChangesNoBit) {
  scenarios::ResolvedScenario alone =
      TwoStages(*scenarios::LoadCluster("one-gpu"));
  alone.num_microbatches = 7;
  alone.scenario.mutable_batch()->set_global_batch_size(7);
  alone.scenario.set_schedule("1f1b");
  alone.device.clear_partition_slowdown();
  scenarios::ResolvedScenario shared = alone;
  *shared.device.mutable_partition_slowdown() = ShareOf(2, 1, 1, 1);
  EXPECT_EQ(Simulate(alone)->SerializeAsString(),
            Simulate(shared)->SerializeAsString());
}

TEST(GpuSharingTest, GpusAreGroupsOfANodesGpus) {
  const auto makespan = [](const Cluster& cluster, std::vector<int> gpus) {
    scenarios::ResolvedScenario resolved = TwoStages(cluster);
    resolved.placement.gpus = std::move(gpus);
    return Simulate(resolved)->makespan_seconds();
  };
  const Cluster six = OneSwitch(6, 1e9, 0);
  EXPECT_NEAR(makespan(six, {0, 3}), 14, 1e-9);
  EXPECT_NEAR(makespan(six, {3, 4}), 13, 1e-9);  // last and first of two
  EXPECT_NEAR(makespan(six, {5, 4}), 14, 1e-9);  // a physical GPU with fewer
  // One GPU per node.
  EXPECT_NEAR(makespan(SharedNics(2, 1e9, 0), {0, 1}), 13, 1e-9);
}

// Checks flows and partitions at the same time: their slowdown factors
// multiply, and each has its own part of the batch time.
TEST(GpuSharingTest, FactorsMultiplyAndAreToldApart) {
  scenarios::ResolvedScenario resolved = TwoStages(OneSwitch(2, 1e9, 0));
  // The transfer of rank 0's first output takes 2 s: 1..3.
  resolved.model.mutable_measured()->mutable_layers(0)->set_activation_bytes(
      2e9);
  resolved.device.mutable_collective_slowdown()->set_value(2);
  const auto result = Simulate(resolved);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_GT(PartOf(*result, "card_sharing"), 0);
  EXPECT_GT(PartOf(*result, "overlap_slowdown"), 0);
  double sum = 0;
  for (const PartSeconds& part : result->parts()) sum += part.seconds();
  EXPECT_NEAR(sum, result->batch_seconds(), 1e-9);
}

}  // namespace weir::sim::gpu_sharing_test
