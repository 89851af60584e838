// SPDX-License-Identifier: Apache-2.0
// Tests the exchanges of context-parallel GPUs inside passes: rings that
// overlap with the attention only, collectives that nothing overlaps, and their
// order. Costs given by hand are on a switch of 100 bytes/s.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "sim/bounds/bound.h"
#include "sim/fast/fast_simulator.h"
#include "sim/simulate.h"
#include "tests/sim/by_costs.h"

namespace weir::sim::context_parallel_test {

using Group = models::LayerCollective::Group;

models::LayerCollective Message(double bytes, int count) {
  return {.kind = models::CollectiveKind::kSendReceive,
          .group = Group::kContext,
          .bytes = bytes,
          .count = count};
}

models::LayerCollective Gather(double bytes) {
  return {.kind = models::CollectiveKind::kAllGather,
          .group = Group::kContext,
          .bytes = bytes};
}

// A ring of four GPUs with three messages of 100 bytes, 3 s in total.
ByCosts Ring(double attention_seconds) {
  ByCosts run{.schedule = OnePass(), .costs = OneStage(10, 20), .data = 4};
  run.costs.context = {1, 4};
  StageCosts& stage = run.costs.stages[0];
  stage.communication.forward_collectives = {Message(100, 3)};
  stage.seconds.ring_forward = attention_seconds;
  return run;
}

TEST(ContextParallelTest, AttentionHidesTheMessagesOfARing) {
  const CostsRun result(Ring(4));
  for (int gpu = 0; gpu < 4; ++gpu) {
    EXPECT_NEAR(result.End(gpu, 0), 10, 1e-9);
    EXPECT_NEAR(result.End(gpu, 1), 30, 1e-9);
    EXPECT_NEAR(result.Times(gpu).context_exchange_seconds, 0, 1e-9);
  }
}

// max(0, transfer - attention) is exposed, whatever else the pass computes.
TEST(ContextParallelTest, OtherKernelsDoNotHideTheMessagesOfARing) {
  for (const double attention : {0.0, 1.0, 2.5}) {
    const CostsRun result(Ring(attention));
    for (int gpu = 0; gpu < 4; ++gpu) {
      EXPECT_NEAR(result.End(gpu, 0), 10 + 3 - attention, 1e-9);
      EXPECT_NEAR(result.Times(gpu).context_exchange_seconds, 3 - attention,
                  1e-9);
      EXPECT_NEAR(result.Times(gpu).tensor_collective_seconds, 0, 1e-9);
    }
    const auto events =
        result.Events(0, Timeline::Collectives::CONTEXT_EXCHANGE);
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(events[0].bytes, 300);
    EXPECT_NEAR(events[0].start, 10, 1e-9);
  }
}

TEST(ContextParallelTest, GathersFollowTheKernels) {
  ByCosts run{.schedule = OnePass(), .costs = OneStage(10, 20), .data = 4};
  run.costs.context = {4, 1};
  run.costs.stages[0].communication.forward_collectives = {Gather(100)};
  run.costs.stages[0].communication.backward_collectives = {Gather(400)};
  const CostsRun result(run);
  for (int gpu = 0; gpu < 4; ++gpu) {
    EXPECT_NEAR(result.End(gpu, 0), 10.75, 1e-9);
    EXPECT_NEAR(result.End(gpu, 1), 10.75 + 20 + 3, 1e-9);
    EXPECT_NEAR(result.Times(gpu).context_exchange_seconds, 3.75, 1e-9);
  }
}

// Groups wait for their slowest member, not for other groups.
TEST(ContextParallelTest, OnlyTheGpusOfAGroupWaitForEachOther) {
  ByCosts run{.schedule = OnePass(), .costs = OneStage(10, 20), .data = 4};
  run.costs.context = {1, 2};
  run.costs.stages[0].communication.forward_collectives = {Message(100, 1)};
  DeviceCosts slow = run.costs;
  slow.stages[0].seconds.forward = 12;
  run.costs.other_devices = {slow};
  run.costs.gpu_device = {0, 1, 0, 0};
  const CostsRun result(run);
  for (int gpu : {0, 1}) EXPECT_NEAR(result.End(gpu, 0), 13, 1e-9);
  for (int gpu : {2, 3}) EXPECT_NEAR(result.End(gpu, 0), 11, 1e-9);
}

TEST(ContextParallelTest, KeysComeBeforeTensorsAndTensorsBeforeExperts) {
  ByCosts run{
      .schedule = OnePass(), .costs = OneStage(10, 20), .tensor = 2, .data = 4};
  run.costs.context = {2, 2};
  run.costs.expert_parallel = 2;
  run.costs.stages[0].parameters.expert_gradient_bytes = 0;
  run.costs.stages[0].communication.forward_collectives = {
      Message(100, 1),
      Gather(100),
      {.bytes = 100},
      {.kind = models::CollectiveKind::kAllToAll,
       .group = Group::kExpert,
       .bytes = 100}};
  const CostsRun result(run);
  for (int gpu = 0; gpu < 8; ++gpu) {
    const GpuTimes times = result.Times(gpu);
    EXPECT_NEAR(times.context_exchange_seconds, 1 + 0.5, 1e-9);
    EXPECT_NEAR(times.tensor_collective_seconds, 1, 1e-9);
    EXPECT_NEAR(times.expert_exchange_seconds, 0.5, 1e-9);
    EXPECT_NEAR(result.End(gpu, 0), 10 + 1.5 + 1 + 0.5, 1e-9);
  }
}

TEST(ContextParallelTest, RingsConnectTheSamePlacesOfNeighbors) {
  const ContextGroups context = {2, 3};
  const int next[] = {2, 3, 4, 5, 0, 1};
  for (int r = 0; r < 6; ++r) {
    EXPECT_EQ(context.NextOf(r), next[r]);
    EXPECT_EQ(context.NextOf(6 + r), 6 + next[r]);
  }
}

// Nothing else uses the links, so the bound is exact.
TEST(ContextParallelTest, TheBoundKnowsWhatIsHidden) {
  for (const double attention : {0.0, 1.0, 4.0}) {
    const CostsRun result(Ring(attention));
    const PassOrder order(result.inputs().schedule, false);
    PassOrder::Buffers buffers;
    const PlanBound bound =
        BoundOfRun(result.inputs(), result.inputs().gpus, &order,
                   /*finds_period=*/false, &buffers);
    EXPECT_NEAR(bound.batch_seconds, result.Makespan(), 1e-9);
  }
}

Scenario Llama(int context, ContextMethod method) {
  Scenario scenario;
  scenario.set_model("llama-3.1-8b");
  scenario.set_cluster("dgx-h100");
  scenario.set_num_nodes(1);
  scenario.mutable_batch()->set_global_batch_size(4);
  scenario.mutable_batch()->set_sequence_length(32768);
  Parallelism& parallelism = *scenario.mutable_parallelism();
  parallelism.set_tensor(2);
  parallelism.set_num_gpus(2 * context);
  parallelism.set_context(context);
  parallelism.set_context_method(method);
  if (method == CONTEXT_A2A_P2P) {
    parallelism.add_hierarchical_context(2);
    parallelism.add_hierarchical_context(context / 2);
  }
  return scenario;
}

Result ResultOf(const Scenario& scenario) {
  const auto resolved = scenarios::ResolveScenario("test", scenario);
  EXPECT_TRUE(resolved.ok()) << resolved.status();
  const auto result = Simulate(*resolved);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : Result();
}

TEST(ContextParallelTest, SharesOutComputationAndCountsFlopOnce) {
  const Result alone = ResultOf(Llama(1, CONTEXT_METHOD_UNSPECIFIED));
  for (const ContextMethod method :
       {CONTEXT_P2P, CONTEXT_ALL_GATHER, CONTEXT_A2A, CONTEXT_A2A_P2P}) {
    SCOPED_TRACE(ContextMethod_Name(method));
    const Result shared = ResultOf(Llama(4, method));
    EXPECT_EQ(shared.data_parallel(), 1u);
    EXPECT_EQ(shared.context_parallel(), 4u);
    EXPECT_EQ(shared.ranks_size(), 8);
    EXPECT_EQ(shared.num_microbatches(), 4u);
    EXPECT_NEAR(
        shared.flops_per_batch().model() / alone.flops_per_batch().model(), 1,
        1e-9);
    // What is not shared is what combines steps and copies tensors.
    EXPECT_NEAR(4 * shared.breakdown().compute_seconds() /
                    alone.breakdown().compute_seconds(),
                1, 0.12);
    EXPECT_LT(shared.batch_seconds(), alone.batch_seconds() / 3);
    EXPECT_LT(shared.peak_memory_bytes(), alone.peak_memory_bytes());
  }
}

TEST(ContextParallelTest, FastEqualsFullAndBoundsHold) {
  for (const ContextMethod method :
       {CONTEXT_P2P, CONTEXT_ALL_GATHER, CONTEXT_A2A, CONTEXT_A2A_P2P}) {
    for (const int nodes : {1, 2}) {
      Scenario scenario = Llama(4, method);
      scenario.set_num_nodes(nodes);
      scenario.mutable_parallelism()->set_num_gpus(8 * nodes);
      scenario.mutable_parallelism()->set_pipeline(nodes);
      scenario.mutable_batch()->set_global_batch_size(24);
      SCOPED_TRACE(absl::StrCat(ContextMethod_Name(method), " ", nodes));
      const auto resolved = scenarios::ResolveScenario("test", scenario);
      ASSERT_TRUE(resolved.ok()) << resolved.status();
      const Result result = ResultOf(scenario);
      const auto fast = FastSimulator().Estimate(*resolved);
      ASSERT_TRUE(fast.ok()) << fast.status();
      EXPECT_TRUE(fast->reduced);
      EXPECT_NEAR(fast->batch_seconds / result.batch_seconds(), 1, 1e-9);
      const auto bound = BoundOf(*resolved);
      ASSERT_TRUE(bound.ok()) << bound.status();
      EXPECT_LE(bound->batch_seconds, result.batch_seconds() * (1 + 1e-9));
      EXPECT_GE(bound->batch_seconds, result.batch_seconds() * 0.8);
    }
  }
}

// The states of ZeRO-1 are shared by all GPUs with the same weights.
TEST(ContextParallelTest, TheOptimizerIsShardedOverDataAndContext) {
  Scenario scenario = Llama(4, CONTEXT_P2P);
  scenario.mutable_training()->set_distributed_optimizer(true);
  const auto resolved = scenarios::ResolveScenario("test", scenario);
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  const auto costs = ComputeCosts(*resolved, 1, {1});
  ASSERT_TRUE(costs.ok()) << costs.status();
  EXPECT_EQ(costs->optimizer_shards, 4);
}

}  // namespace weir::sim::context_parallel_test
