// SPDX-License-Identifier: Apache-2.0
// Tests experts in a grid of their own over the GPUs of a pipeline rank, and
// hybrid sharding: the groups, their collectives, and that bounds and fast
// estimates agree with full runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "base/textproto.h"
#include "sim/bounds/bound.h"
#include "sim/fast/fast_simulator.h"
#include "sim/graph/replica_groups.h"
#include "sim/simulate.h"
#include "tests/sim/by_costs.h"
#include "tests/sim/methods_agree.h"

namespace weir::sim::expert_groups_test {

using testing::HasSubstr;
using Group = models::LayerCollective::Group;

scenarios::Placement Grid(int tensor, int data) {
  scenarios::Placement place{tensor, data, 1, {}};
  place.gpus.resize(place.num_gpus());
  std::iota(place.gpus.begin(), place.gpus.end(), 0);
  return place;
}

// Returns how often each GPU occurs in the groups.
std::map<int, int> Members(const ReplicaGroups& groups,
                           const std::vector<GpuRun>& runs) {
  std::map<int, int> members;
  for (const GpuRun& run : runs) {
    for (const int gpu : groups.GpusOf(run, {0})) ++members[gpu];
  }
  return members;
}

struct Sizes {
  int tensor, data, expert, expert_tensor, groups;
};

constexpr Sizes kSizes[] = {{1, 8, 4, 0, 1}, {2, 4, 2, 0, 1},  {4, 4, 8, 1, 1},
                            {4, 4, 2, 1, 1}, {4, 4, 16, 1, 1}, {2, 8, 2, 4, 1},
                            {4, 2, 1, 1, 1}, {2, 8, 4, 1, 2},  {1, 8, 2, 2, 2},
                            {2, 8, 2, 0, 4}, {3, 4, 2, 1, 2}};

// Every GPU is in one group of each kind, and the groups have the right sizes.
TEST(ExpertGroupsTest, GroupsDivideTheGpusOfARank) {
  for (const auto& [tensor, data, expert, each, replicate] : kSizes) {
    const scenarios::Placement place = Grid(tensor, data);
    const ReplicaGroups groups(expert, each, replicate, place);
    const int num_gpus = tensor * data;
    const int block = expert * (each > 0 ? each : tensor);
    EXPECT_EQ(groups.block(), block);
    const auto expect_all = [&](const std::vector<GpuRun>& runs, int size) {
      const std::map<int, int> members = Members(groups, runs);
      EXPECT_EQ(std::ssize(members), num_gpus);
      for (const auto& [gpu, count] : members) EXPECT_EQ(count, 1) << gpu;
      for (const GpuRun& run : runs) EXPECT_EQ(run.count, size);
    };
    expect_all(groups.Exchanges(0, num_gpus), expert);
    expect_all(groups.ExpertTensors(0, num_gpus), block / expert);
    std::vector<GpuRun> copies, experts, shards;
    for (int t = 0; t < tensor; ++t) {
      for (const GpuRun& run : groups.Copies(t)) {
        copies.push_back(run);
        EXPECT_EQ(groups.TensorRankOf(run.first), t);
      }
      for (const GpuRun& run : groups.ExpertCopies(t)) experts.push_back(run);
      for (const GpuRun& run : groups.ShardCopies(t)) shards.push_back(run);
    }
    expect_all(copies, data / replicate);
    if (groups.experts_differ()) {
      expect_all(experts, num_gpus / block / replicate);
    } else {
      EXPECT_TRUE(experts.empty());
    }
    if (replicate > 1) expect_all(shards, replicate);
  }
}

// GPU i has expert block i / (GPUs per expert) modulo their number: two GPUs of
// an exchange have different experts, and copies the same.
TEST(ExpertGroupsTest, CopiesHaveTheSameExperts) {
  for (const auto& [tensor, data, expert, each, replicate] : kSizes) {
    const scenarios::Placement place = Grid(tensor, data);
    const ReplicaGroups groups(expert, each, replicate, place);
    const int width = each > 0 ? each : tensor;
    const auto part = [width, num_blocks = expert](int gpu) {
      return std::pair(gpu / width % num_blocks, gpu % width);
    };
    for (const GpuRun& run : groups.Exchanges(0, tensor * data)) {
      std::set<int> experts;
      for (const int gpu : groups.GpusOf(run, {0})) {
        experts.insert(part(gpu).first);
      }
      EXPECT_EQ(std::ssize(experts), expert);
    }
    for (int t = 0; t < tensor; ++t) {
      for (const GpuRun& run : groups.ExpertCopies(t)) {
        const std::vector<int> gpus = groups.GpusOf(run, {0});
        for (const int gpu : gpus) EXPECT_EQ(part(gpu), part(gpus[0]));
      }
    }
  }
}

ByCosts Folded(int tensor, int data, int expert, int each) {
  ByCosts run{.schedule = OnePass(),
              .costs = OneStage(1, 2),
              .tensor = tensor,
              .data = data};
  run.costs.tensor = tensor;
  run.costs.expert_parallel = expert;
  run.costs.expert_tensor = each;
  return run;
}

// Eight GPUs exchange 80 bytes each: 70 of them leave the GPU.
TEST(ExpertGroupsTest, ExpertsOnTensorRanksExchangeTokens) {
  ByCosts run = Folded(4, 2, 8, 1);
  run.costs.stages[0].communication.forward_collectives = {
      {.kind = models::CollectiveKind::kAllToAll,
       .group = Group::kExpert,
       .bytes = 80}};
  run.costs.stages[0].parameters.expert_gradient_bytes = 0;
  const CostsRun result(run);
  for (int gpu = 0; gpu < 8; ++gpu) {
    EXPECT_NEAR(result.End(gpu, 0), 1 + 0.7, 1e-9);
    EXPECT_NEAR(result.Times(gpu).expert_exchange_seconds, 0.7, 1e-9);
    EXPECT_NEAR(result.Times(gpu).tensor_collective_seconds, 0, 1e-9);
  }
}

// Pairs of GPUs share an expert: half of 100 bytes are gathered, and then half
// of 40 exchanged, also across the two tensor groups of one replica.
TEST(ExpertGroupsTest, GpusOfAnExpertGatherBeforeTheExchange) {
  ByCosts run = Folded(4, 2, 2, 2);
  run.costs.stages[0].communication.forward_collectives = {
      {.kind = models::CollectiveKind::kAllGather,
       .group = Group::kExpertTensor,
       .bytes = 100},
      {.kind = models::CollectiveKind::kAllToAll,
       .group = Group::kExpert,
       .bytes = 40}};
  const CostsRun result(run);
  for (int gpu = 0; gpu < 8; ++gpu) {
    EXPECT_NEAR(result.End(gpu, 0), 1 + 0.5 + 0.2, 1e-9);
    const auto events =
        result.Events(gpu, Timeline::Collectives::EXPERT_EXCHANGE);
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(events[0].bytes, 140);
  }
}

// Four tensor ranks x two replicas; two experts on each of them, so that eight
// GPUs have four copies of each: 400 bytes take 2 x 3/4 x 4 s, other gradients,
// which have two copies, 2 x 1/2 x 1 s.
TEST(ExpertGroupsTest, CopiesOnSeveralTensorRanksAddUp) {
  ByCosts run = Folded(4, 2, 2, 1);
  StageCosts& stage = run.costs.stages[0];
  stage.parameters.gradient_bytes = 500;
  stage.parameters.expert_gradient_bytes = 400;
  EXPECT_NEAR(CostsRun(run).Makespan(), 3 + 1 + 6, 1e-9);
  // A single replica has only copies of experts.
  run.data = 1;
  EXPECT_NEAR(CostsRun(run).Makespan(), 3 + 2 * 0.5 * 4, 1e-9);
}

// As many experts as tensor ranks, each on one of them: all copies of weights
// are on one tensor rank, as if tensor groups shared experts.
TEST(ExpertGroupsTest, OneBlockPerTensorGroupReducesEverythingTogether) {
  ByCosts run = Folded(4, 2, 4, 1);
  StageCosts& stage = run.costs.stages[0];
  stage.parameters.gradient_bytes = 500;
  stage.parameters.expert_gradient_bytes = 400;
  EXPECT_NEAR(CostsRun(run).Makespan(), 3 + 5, 1e-9);
}

TEST(ExpertGroupsTest, StatesAreShardedOverTheCopiesOfExperts) {
  Costs costs = OneStage(1, 2);
  StageCosts& stage = costs.stages[0];
  stage.parameters.gradient_bytes = 1000;
  stage.parameters.expert_gradient_bytes = 600;
  costs.tensor = 2;
  costs.optimizer_shards = 8;
  costs.expert_parallel = 8;
  costs.expert_tensor = 1;
  // 16 GPUs have two copies of each expert.
  EXPECT_NEAR(costs.stepped_part(stage), 0.4 / 8 + 0.6 / 2, 1e-12);
  costs.expert_tensor = 0;  // one copy
  EXPECT_NEAR(costs.stepped_part(stage), 0.4 / 8 + 0.6, 1e-12);
}

// Four replicas in two groups: 400 bytes are scattered in a group (half of them
// move), half of them are then summed over the groups (all of these move), and
// the new weights gathered in a group.
TEST(HybridShardingTest, ShardsAreSummedAcrossGroups) {
  ByCosts run{.schedule = OnePass(), .costs = OneStage(1, 2), .data = 4};
  run.costs.optimizer_shards = 2;
  run.costs.shard_replicas = 2;
  StageCosts& stage = run.costs.stages[0];
  stage.parameters.gradient_bytes = 400;
  stage.parameters.weight_bytes = 200;
  stage.parameters.optimizer_state_bytes = 1200;
  stage.step.seconds = 0.5;
  const CostsRun result(run);
  EXPECT_NEAR(result.Makespan(), 3 + 2 + 2 + 0.5 + 1, 1e-9);
  for (int gpu = 0; gpu < 4; ++gpu) {
    EXPECT_EQ(result.PeakOf(gpu, MemoryClass::OPTIMIZER_STATE), 600);
  }
  // One group: 3/4 of 400 bytes, and of 200.
  run.costs.optimizer_shards = 4;
  run.costs.shard_replicas = 1;
  EXPECT_NEAR(CostsRun(run).Makespan(), 3 + 3 + 0.5 + 1.5, 1e-9);
}

// Groups are replicas in a row, which share nodes.
TEST(HybridShardingTest, OnlyShardsLeaveTheNode) {
  ByCosts run{.schedule = OnePass(), .costs = OneStage(1, 2), .data = 4};
  run.costs.optimizer_shards = 2;
  run.costs.shard_replicas = 2;
  run.costs.stages[0].parameters.gradient_bytes = 400;
  run.costs.stages[0].parameters.weight_bytes = 0;
  Cluster cluster = OneSwitch(2, 100, 0);
  NodeGroup* group = cluster.mutable_groups(0);
  group->set_count(2);
  for (int i = 0; i < 2; ++i) {
    group->mutable_node()->add_nics()->set_bytes_per_second(10);
  }
  run.cluster = cluster;
  // 200 bytes inside, 200 between nodes at a tenth of the rate.
  EXPECT_NEAR(CostsRun(run).Makespan(), 3 + 2 + 20, 1e-6);
}

std::string Text(const char* parallelism, const char* training,
                 const char* cluster = "dgx-h100") {
  return absl::StrCat(R"pb(cluster: ")pb", cluster,
                      R"pb("
                           batch {
                             microbatch_size: 1
                             global_batch_size: 32
                             sequence_length: 256
                           }
                           transformer {
                             num_layers: 4
                             hidden_size: 512
                             num_heads: 8
                             feed_forward_size: 2048
                             vocabulary_size: 8192
                             causal: true
                             num_experts: 16
                             experts_per_token: 2
                             expert_feed_forward_size: 1024
                           }
                           parallelism {)pb",
                      parallelism, " } training { ", training, " }");
}

class ExpertAgreementTest
    : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

// Bounds hold, and fast estimates, which reduce symmetries, equal full runs.
TEST_P(ExpertAgreementTest, FastEqualsFullAndBoundsHold) {
  const auto& [parallelism, training] = GetParam();
  Scenario scenario;
  const absl::Status parsed =
      ParseTextProto("test", Text(parallelism, training), &scenario);
  ASSERT_TRUE(parsed.ok()) << parsed;
  const auto resolved = scenarios::ResolveScenario("test", scenario);
  if (scenario.training().fully_sharded() &&
      scenario.parallelism().tensor() == 4 &&
      scenario.parallelism().expert() == 2 &&
      scenario.parallelism().expert_tensor() == 1) {
    EXPECT_THAT(std::string(resolved.status().message()),
                HasSubstr("parallelism.expert is 2, expected that it x "
                          "parallelism.expert_tensor 1 is a multiple of "
                          "parallelism.tensor 4"));
    return;
  }
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  const auto full = Simulate(*resolved);
  const auto fast = FastSimulator().Estimate(*resolved);
  const auto bound = BoundOf(*resolved);
  ASSERT_TRUE(full.ok() && fast.ok() && bound.ok())
      << full.status() << fast.status() << bound.status();
  EXPECT_TRUE(fast->reduced) << fast->not_reduced;
  ExpectMethodsAgree(*full, *fast, bound->batch_seconds);
  for (const RankResult& rank : full->ranks()) {
    EXPECT_LE(bound->peak_bytes[rank.rank()],
              rank.peak_memory_bytes() * (1 + 1e-9));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Experts, ExpertAgreementTest,
    testing::Combine(
        testing::Values(
            "tensor: 2 data: 8 expert: 16 expert_tensor: 1 "
            "sequence_parallel: true",
            "tensor: 4 data: 4 pipeline: 2 expert: 8 expert_tensor: 1 "
            "sequence_parallel: true",
            "tensor: 4 data: 4 expert: 2 expert_tensor: 1 "
            "sequence_parallel: true",
            "tensor: 4 data: 2 pipeline: 2 expert: 2 expert_tensor: 2 "
            "sequence_parallel: true",
            "tensor: 1 data: 16 expert: 4 expert_tensor: 2",
            "tensor: 2 data: 2 context: 4 expert: 16 expert_tensor: 1 "
            "sequence_parallel: true",
            "tensor: 2 data: 16 data_replicate: 2 expert: 8 expert_tensor: 1 "
            "sequence_parallel: true",
            "tensor: 2 data: 8 data_replicate: 4 sequence_parallel: true"),
        testing::Values("distributed_optimizer: true",
                        "distributed_optimizer: false fully_sharded: true",
                        "distributed_optimizer: true expert_imbalance: 2")));

}  // namespace weir::sim::expert_groups_test
