// SPDX-License-Identifier: Apache-2.0
// Tests tensor parallelism in the simulator: collectives take the time of their
// rings, count as busy and as exposed, and share NVLink with stage transfers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "schedules/registry.h"
#include "schedules/semantics.h"
#include "sim/costs/stage_costs.h"
#include "sim/engine/engine.h"
#include "sim/graph/pipeline_graph.h"
#include "sim/simulate.h"
#include "tests/oracle.h"
#include "tests/sim/measured.h"

namespace weir::sim::tensor_test {

constexpr double kSequence = 512, kHidden = 768;
constexpr double kTensorBytes = 4 * kSequence * kHidden;  // fp32

struct Tensor {
  std::string schedule = "gpipe";
  int tensor = 2;
  int num_ranks = 1;
  int num_chunks = 1;
  int num_microbatches = 1;
  int num_batches = 1;
  int num_replicas = 1;
  int blocks_per_stage = 2;
  double kernel_seconds = 0;
  RecomputeMode recompute = RECOMPUTE_NONE;
  bool sequence_parallel = false;
  bool blocking = false;

  int num_stages() const { return num_ranks * num_chunks; }
};

scenarios::ResolvedScenario Resolve(const Tensor& tensor,
                                    const Cluster& cluster) {
  scenarios::ResolvedScenario resolved;
  resolved.label = "test";
  resolved.num_microbatches = tensor.num_microbatches;
  resolved.placement = {
      tensor.tensor, tensor.num_replicas, tensor.num_ranks, {}};
  for (int i = 0; i < resolved.placement.num_gpus(); ++i) {
    resolved.placement.gpus.push_back(i);
  }
  resolved.cluster = cluster;
  resolved.device = FreeDevice();
  // Only kernels that are counted here take time.
  resolved.device.mutable_matrix_rates(0)->mutable_peak_flops()->set_value(
      1e300);
  resolved.device.mutable_kernel_seconds()->set_value(tensor.kernel_seconds);
  resolved.device.mutable_gemm()->mutable_launch_seconds()->set_value(
      tensor.kernel_seconds);
  Transformer* transformer = resolved.model.mutable_transformer();
  transformer->set_num_layers(tensor.num_stages() * tensor.blocks_per_stage);
  transformer->set_hidden_size(kHidden);
  transformer->set_num_heads(16);
  transformer->set_num_kv_heads(16);
  transformer->set_head_size(kHidden / 16);
  transformer->set_feed_forward_size(4 * kHidden);
  transformer->set_vocabulary_size(1024);
  transformer->set_num_positions(kSequence);
  transformer->set_causal(true);
  transformer->set_pooler(true);  // no logits, so no collectives of the head
  Scenario& scenario = resolved.scenario;
  scenario.set_schedule(tensor.schedule);
  scenario.mutable_parallelism()->set_tensor(tensor.tensor);
  scenario.mutable_parallelism()->set_pipeline(tensor.num_ranks);
  scenario.mutable_parallelism()->set_data(tensor.num_replicas);
  scenario.mutable_parallelism()->set_chunks(tensor.num_chunks);
  scenario.mutable_parallelism()->set_sequence_parallel(
      tensor.sequence_parallel);
  scenario.mutable_batch()->set_microbatch_size(1);
  scenario.mutable_batch()->set_sequence_length(kSequence);
  scenario.mutable_batch()->set_global_batch_size(tensor.num_microbatches *
                                                  tensor.num_replicas);
  scenario.mutable_training()->set_precision(FP32);
  scenario.mutable_training()->set_recompute(tensor.recompute);
  scenario.mutable_communication()->set_transfers(tensor.blocking ? BLOCKING
                                                                  : OVERLAPPED);
  scenario.mutable_communication()->set_gradient_reduction(REDUCTION_BLOCKING);
  scenario.set_num_batches(tensor.num_batches);
  return resolved;
}

// Collectives of one microbatch: two per block and pass, and one for the
// forward of the embedding.
double NumForward(const Tensor& tensor, int stage) {
  return 2 * tensor.blocks_per_stage + (stage == 0 ? 1 : 0);
}
double NumBackward(const Tensor& tensor) {
  const int repeats = tensor.recompute == RECOMPUTE_FULL ? 2 : 1;
  return 2 * repeats * tensor.blocks_per_stage;
}

// The time of a ring all-reduce of a tensor: 2(t-1) steps of 1/t of the bytes.
double RingSeconds(int t, double bytes, double bytes_per_second,
                   double latency_seconds) {
  return 2.0 * (t - 1) * (bytes / t / bytes_per_second + latency_seconds);
}

// Nodes of t GPUs on a switch with one NIC per GPU, so no link is shared:
// collectives stay within nodes, transfers go between them.
Cluster Nodes(int num_nodes, int gpus_per_node, double nv_bytes_per_second,
              double nv_latency_seconds, double nic_bytes_per_second,
              double nic_latency_seconds) {
  Cluster cluster =
      OneSwitch(gpus_per_node, nv_bytes_per_second, nv_latency_seconds);
  cluster.mutable_groups(0)->set_count(num_nodes);
  for (int gpu = 0; gpu < gpus_per_node; ++gpu) {
    Nic* nic = cluster.mutable_groups(0)->mutable_node()->add_nics();
    nic->set_bytes_per_second(nic_bytes_per_second);
    nic->add_gpus(gpu);
  }
  cluster.mutable_fabric()->set_latency_seconds(nic_latency_seconds);
  return cluster;
}

Result RunTensor(const Tensor& tensor, const Cluster& cluster) {
  SimulateOptions options;
  options.keep_timeline = true;
  const auto result = Simulate(Resolve(tensor, cluster), options);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : Result();
}

TEST(TensorTest, CollectivesTakeWhatTheRingTakes) {
  for (int t : {2, 4, 8}) {
    for (double latency : {0.0, 3e-6}) {
      // Only recomputed layers repeat their collectives; the attention core has
      // none.
      for (RecomputeMode recompute :
           {RECOMPUTE_NONE, RECOMPUTE_SELECTIVE, RECOMPUTE_FULL}) {
        Tensor tensor{.tensor = t, .num_microbatches = 3};
        tensor.recompute = recompute;
        const Result result = RunTensor(tensor, OneSwitch(t, 100e9, latency));
        const double ring = RingSeconds(t, kTensorBytes, 100e9, latency);
        const double expected =
            3 * (NumForward(tensor, 0) + NumBackward(tensor)) * ring;
        EXPECT_NEAR(result.makespan_seconds(), expected, 1e-9 * expected);
        for (const RankResult& rank : result.ranks()) {
          EXPECT_NEAR(rank.busy_seconds(), expected, 1e-9 * expected);
          EXPECT_NEAR(rank.exposed_communication_seconds(), expected,
                      1e-9 * expected);
          EXPECT_NEAR(rank.idle_seconds(), 0, 1e-9 * expected);
        }
        EXPECT_NEAR(result.idle_ratio(), 0, 1e-9);
        EXPECT_NEAR(result.exposed_communication_ratio(), 1, 1e-9);
      }
    }
  }
}

TEST(TensorTest, ComputationIsBusyButNotExposed) {
  const Tensor tensor{
      .tensor = 4, .num_microbatches = 2, .kernel_seconds = 1e-4};
  const Cluster cluster = OneSwitch(4, 100e9, 2e-6);
  const auto costs = ComputeCosts(Resolve(tensor, cluster), 1, {1});
  ASSERT_TRUE(costs.ok()) << costs.status();
  const StageCosts& stage = costs->stages[0];
  const double collectives = 2 * (NumForward(tensor, 0) + NumBackward(tensor)) *
                             RingSeconds(4, kTensorBytes, 100e9, 2e-6);
  const double computation =
      2 * (stage.seconds.forward + stage.seconds.backward) + stage.step.seconds;
  ASSERT_GT(stage.step.seconds, 0);
  const Result result = RunTensor(tensor, cluster);
  const double expected = computation + collectives;
  EXPECT_NEAR(result.makespan_seconds(), expected, 1e-9 * expected);
  for (const RankResult& rank : result.ranks()) {
    EXPECT_NEAR(rank.busy_seconds(), expected, 1e-9 * expected);
    EXPECT_NEAR(rank.exposed_communication_seconds(), collectives,
                1e-9 * expected);
  }
}

// With links of its own, a stage acts as one processor whose passes take as
// long as their kernels and collectives together.
TEST(TensorTest, PipelinesOfTensorGroupsEqualTheOracle) {
  const double nv = 100e9, nic = 20e9, nv_latency = 2e-6, nic_latency = 7e-6;
  struct Case {
    const char* schedule;
    int num_chunks, num_batches;
    bool blocking;
  };
  for (const auto& [schedule, chunks, batches, blocking] :
       {Case{"gpipe", 1, 1, false}, Case{"1f1b", 1, 1, false},
        Case{"1f1b", 1, 1, true}, Case{"pipedream-2bw", 1, 3, false},
        Case{"interleaved-1f1b", 2, 1, false}}) {
    for (bool sequence_parallel : {false, true}) {
      const int p = 4, t = 2;
      Tensor tensor{.schedule = schedule,
                    .tensor = t,
                    .num_ranks = p,
                    .num_chunks = chunks,
                    .num_microbatches = 8,
                    .num_batches = batches,
                    .kernel_seconds = 1e-4};
      tensor.sequence_parallel = sequence_parallel;
      tensor.blocking = blocking;
      const Cluster cluster = Nodes(p, t, nv, nv_latency, nic, nic_latency);
      const auto costs = ComputeCosts(
          Resolve(tensor, cluster), tensor.num_stages(),
          std::vector<int>(tensor.num_stages(), batches > 1 ? 2 : 1));
      ASSERT_TRUE(costs.ok()) << costs.status();
      const auto plan =
          schedules::GenerateSchedule(schedule, {p, 8, chunks, batches});
      ASSERT_TRUE(plan.ok()) << plan.status();
      oracle::Costs expect;
      const auto collectives = [&](double halves) {
        return RingSeconds(t, halves / 2 * kTensorBytes, nv,
                           halves / 2 * nv_latency);
      };
      for (int s = 0; s < tensor.num_stages(); ++s) {
        const StageCosts& stage = costs->stages[s];
        // All-gathers and reduce-scatters are half all-reduces. The backward of
        // a block gathers both inputs again.
        double forward = 2 * NumForward(tensor, s);
        double backward = 2 * NumBackward(tensor);
        if (sequence_parallel) {
          backward += 2 * tensor.blocks_per_stage + (s == 0 ? 1 : 0);
          forward -= s == 0 ? 1 : 0;
        }
        expect.forward_seconds.push_back(stage.seconds.forward +
                                         collectives(forward));
        expect.backward_seconds.push_back(stage.seconds.backward +
                                          collectives(backward));
        expect.update_seconds.push_back(batches > 1 ? stage.step.seconds : 0);
      }
      expect.latency_seconds = nic_latency;
      expect.transfer_seconds = [&](const schedules::Action&) {
        return kTensorBytes / (sequence_parallel ? t : 1) / nic;
      };
      const auto timing =
          oracle::Evaluate(*plan, expect,
                           blocking ? oracle::Transfers::kBlocking
                                    : oracle::Transfers::kBuffered);
      ASSERT_TRUE(timing.ok()) << timing.status();
      const Result result = RunTensor(tensor, cluster);
      int event = 0;
      for (int gpu = 0; gpu < p * t; ++gpu) {
        const int rank = gpu / t;
        const auto& actions = result.timeline().actions();
        for (size_t i = 0; i < plan->rank_actions[rank].size(); ++event) {
          if (actions.op(event) > Timeline::Actions::BACKWARD_WEIGHT)
            continue;  // optimizer steps
          ASSERT_EQ(actions.gpu(event), static_cast<uint32_t>(gpu));
          ASSERT_NEAR(actions.start_seconds(event),
                      timing->start_seconds[rank][i],
                      1e-9 * timing->makespan_seconds)
              << schedule << " gpu " << gpu << " position " << i;
          ++i;
        }
        while (event < actions.op_size() &&
               actions.op(event) > Timeline::Actions::BACKWARD_WEIGHT)
          ++event;
        EXPECT_NEAR(result.ranks(gpu).span_seconds(),
                    timing->span_seconds[rank],
                    1e-9 * timing->makespan_seconds);
      }
    }
  }
}

// A stage transfer and the collective of the next microbatch leave a GPU
// through the same port, at half its rate each until the transfer, which is
// smaller, is done.
TEST(TensorTest, CollectivesAndTransfersShareNvLink) {
  const double bandwidth = 100e9;
  const Tensor tensor{.tensor = 2, .num_ranks = 2, .num_microbatches = 2};
  const Result result = RunTensor(tensor, OneSwitch(4, bandwidth, 0));
  const double whole = kTensorBytes / bandwidth;
  // With two GPUs, a ring carries 2(t-1)/t = 1 tensor in each direction.
  const double alone = NumForward(tensor, 0) * whole;
  const auto& collectives = result.timeline().collectives();
  const auto& transfers = result.timeline().transfers();
  const auto collective_end = [&](uint32_t gpu, int microbatch) {
    for (int i = 0; i < collectives.gpu_size(); ++i) {
      if (collectives.gpu(i) == gpu && collectives.stage(i) == 0 &&
          collectives.microbatch(i) == microbatch) {
        return collectives.end_seconds(i);
      }
    }
    ADD_FAILURE() << "no collective of gpu " << gpu;
    return 0.0;
  };
  int found = 0;
  for (int i = 0; i < transfers.from_gpu_size(); ++i) {
    if (transfers.kind(i) != Timeline::Transfers::ACTIVATION ||
        transfers.microbatch(i) != 0)
      continue;
    ++found;
    EXPECT_EQ(transfers.to_gpu(i), transfers.from_gpu(i) + 2);
    EXPECT_NEAR(transfers.start_seconds(i), alone, 1e-9 * alone);
    EXPECT_NEAR(transfers.end_seconds(i), alone + 2 * whole, 1e-9 * alone);
  }
  EXPECT_EQ(found, 2);
  double stage_bytes[] = {0, 0};
  for (int i = 0; i < collectives.gpu_size(); ++i) {
    stage_bytes[collectives.stage(i)] += collectives.bytes(i);
  }
  for (int s : {0, 1}) {  // two GPUs, two microbatches
    EXPECT_EQ(stage_bytes[s],
              4 * (NumForward(tensor, s) + NumBackward(tensor)) * kTensorBytes);
  }
  for (uint32_t gpu : {0, 1}) {
    EXPECT_NEAR(collective_end(gpu, 0), alone, 1e-9 * alone);
    EXPECT_NEAR(collective_end(gpu, 1), alone + alone + whole, 1e-9 * alone);
  }
}

// Replicas reduce among GPUs of the same tensor rank, all at the same time,
// each with its part of the parameters.
TEST(TensorTest, ReplicasReduceTheirPartOfTheGradients) {
  const int t = 2, replicas = 4;
  const Tensor tensor{.tensor = t, .num_replicas = replicas};
  const Cluster cluster = OneSwitch(t * replicas, 100e9, 2e-6);
  const auto costs = ComputeCosts(Resolve(tensor, cluster), 1, {1});
  ASSERT_TRUE(costs.ok()) << costs.status();
  const double reduce = RingSeconds(
      replicas, costs->stages[0].parameters.gradient_bytes, 100e9, 2e-6);
  const double collectives = (NumForward(tensor, 0) + NumBackward(tensor)) *
                             RingSeconds(t, kTensorBytes, 100e9, 2e-6);
  const Result result = RunTensor(tensor, cluster);
  // A hop carries whole bytes.
  const double tolerance = 1 / 100e9;
  EXPECT_NEAR(result.makespan_seconds(), collectives + reduce, tolerance);
  for (const RankResult& rank : result.ranks()) {
    EXPECT_NEAR(rank.busy_seconds(), collectives, 1e-9 * collectives);
    EXPECT_NEAR(rank.exposed_communication_seconds(), collectives + reduce,
                tolerance);
  }
  const auto& events = result.timeline().collectives();
  int reductions = 0;
  for (int i = 0; i < events.gpu_size(); ++i)
    reductions += events.kind(i) == Timeline::Collectives::GRADIENT_REDUCTION;
  EXPECT_EQ(reductions, t * replicas);
}

// Each tensor rank reduces over its own NICs and waits for its own ring.
TEST(TensorTest, EveryTensorRankWaitsForItsOwnReduction) {
  const double nic[] = {10e9, 2.5e9};
  const Tensor tensor{.tensor = 2, .num_replicas = 2};
  Cluster cluster = Nodes(2, 2, 100e9, 0, nic[0], 0);
  cluster.mutable_groups(0)
      ->mutable_node()
      ->mutable_nics(1)
      ->set_bytes_per_second(nic[1]);
  const auto costs = ComputeCosts(Resolve(tensor, cluster), 1, {1});
  ASSERT_TRUE(costs.ok()) << costs.status();
  const double collectives = (NumForward(tensor, 0) + NumBackward(tensor)) *
                             RingSeconds(2, kTensorBytes, 100e9, 0);
  const Result result = RunTensor(tensor, cluster);
  for (int gpu = 0; gpu < 4; ++gpu) {
    // With two members, a ring carries the bytes once in each direction.
    const double reduce =
        costs->stages[0].parameters.gradient_bytes / nic[gpu % 2];
    EXPECT_NEAR(result.ranks(gpu).exposed_communication_seconds(),
                collectives + reduce, 1 / nic[1]);
  }
}

// The input of one member arrives later, over a slower NIC, and the collective
// waits for it.
TEST(TensorTest, CollectivesWaitForEveryMember) {
  const double nv = 100e9, nic = 20e9, slow_nic = 10e9;
  for (int slow : {0, 1}) {
    const Tensor tensor{.schedule = "1f1b",
                        .tensor = 2,
                        .num_ranks = 2,
                        .num_microbatches = 3,
                        .kernel_seconds = 1e-5};
    Cluster cluster = Nodes(2, 2, nv, 0, nic, 0);
    cluster.mutable_groups(0)
        ->mutable_node()
        ->mutable_nics(slow)
        ->set_bytes_per_second(slow_nic);
    const auto costs = ComputeCosts(Resolve(tensor, cluster), 2, {1, 1});
    ASSERT_TRUE(costs.ok()) << costs.status();
    const auto plan = schedules::GenerateSchedule("1f1b", {2, 3, 1, 1});
    ASSERT_TRUE(plan.ok()) << plan.status();
    oracle::Costs expect;
    const double ring = RingSeconds(2, kTensorBytes, nv, 0);
    for (int s = 0; s < 2; ++s) {
      expect.forward_seconds.push_back(costs->stages[s].seconds.forward +
                                       NumForward(tensor, s) * ring);
      expect.backward_seconds.push_back(costs->stages[s].seconds.backward +
                                        NumBackward(tensor) * ring);
    }
    expect.transfer_seconds = [&](const schedules::Action&) {
      return kTensorBytes / slow_nic;
    };
    const auto timing = oracle::Evaluate(*plan, expect);
    ASSERT_TRUE(timing.ok()) << timing.status();
    const Result result = RunTensor(tensor, cluster);
    const auto& actions = result.timeline().actions();
    // The slow member is always last, and matches the oracle.
    for (int rank = 0; rank < 2; ++rank) {
      size_t position = 0;
      for (int i = 0; i < actions.op_size(); ++i) {
        const bool step = actions.op(i) > Timeline::Actions::BACKWARD_WEIGHT;
        if (step || actions.gpu(i) != static_cast<uint32_t>(2 * rank + slow)) {
          continue;
        }
        EXPECT_NEAR(actions.start_seconds(i),
                    timing->start_seconds[rank][position++],
                    1e-9 * timing->makespan_seconds);
      }
      EXPECT_EQ(position, plan->rank_actions[rank].size());
    }
  }
}

// The collectives of a backward belong to the input gradient: W has none.
TEST(TensorTest, WeightGradientsCallNoCollective) {
  schedules::Schedule schedule;
  schedule.name = "split";
  schedule.num_ranks = schedule.num_stages = 1;
  schedule.num_microbatches = 1;
  schedule.routes = {{0}};
  schedule.rank_actions = {{{schedules::Op::kForward, 0, 0},
                            {schedules::Op::kBackwardInput, 0, 0},
                            {schedules::Op::kBackwardWeight, 0, 0}}};
  const auto semantics = schedules::InterpretSchedule(schedule);
  ASSERT_TRUE(semantics.ok()) << semantics.status();
  Costs costs;
  StageCosts& stage = costs.stages.emplace_back();
  stage.seconds.forward = 1;
  stage.seconds.backward_parts = {2, 4};
  stage.communication.forward_collectives = {{.bytes = 1000, .count = 1}};
  stage.communication.backward_collectives = {{.bytes = 1000, .count = 3}};
  const scenarios::Network network(OneSwitch(2, 100, 0));
  const scenarios::Placement placement{2, 1, 1, {0, 1}};
  const Communication communication;
  const PipelineInputs inputs{schedule, *semantics, costs,
                              network,  placement,  communication};
  const PipelineGraph graph = BuildPipelineGraph(inputs);
  const auto recording = RunTaskGraph(graph.tasks, network.links());
  ASSERT_TRUE(recording.ok()) << recording.status();
  const double ends[] = {1 + 10, 11 + 2 + 30, 43 + 4};
  for (int gpu : {0, 1}) {
    for (int i = 0; i < 3; ++i) {
      EXPECT_NEAR(recording->end_seconds()[graph.ActionEnd(gpu, i)], ends[i],
                  1e-9);
    }
  }
}

}  // namespace weir::sim::tensor_test
