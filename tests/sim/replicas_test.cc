// SPDX-License-Identifier: Apache-2.0
// Tests several replicas of a pipeline: each runs independently, except for the
// reduction of gradients.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>

#include "schedules/registry.h"
#include "sim/simulate.h"
#include "tests/oracle.h"
#include "tests/sim/measured.h"

namespace weir::sim::replicas_test {

Result RunReplicas(const scenarios::ResolvedScenario& resolved) {
  SimulateOptions options;
  options.keep_timeline = true;
  const auto result = Simulate(resolved, options);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : Result();
}

struct Edge {
  int a, b, num_links;
};

// One node with NVLinks of 100 bytes/s each.
Cluster Mesh(int num_gpus, const std::vector<Edge>& edges) {
  Cluster cluster;
  NodeGroup* group = cluster.add_groups();
  group->set_count(1);
  group->mutable_node()->set_num_gpus(num_gpus);
  NvLinkMesh* mesh = group->mutable_node()->mutable_nv_link_mesh();
  mesh->set_bytes_per_second_per_link(100);
  for (const auto& [a, b, num_links] : edges) {
    NvLinkMesh::Edge* edge = mesh->add_edges();
    edge->set_a(a);
    edge->set_b(b);
    edge->set_num_links(num_links);
  }
  return cluster;
}

// Returns start and end of each reduction in seconds, by GPU and stage.
std::map<std::pair<int, int>, std::pair<double, double>> Reductions(
    const Result& result) {
  std::map<std::pair<int, int>, std::pair<double, double>> spans;
  const auto& events = result.timeline().collectives();
  for (int i = 0; i < events.gpu_size(); ++i) {
    if (events.kind(i) != Timeline::Collectives::GRADIENT_REDUCTION) continue;
    spans[{events.gpu(i), events.stage(i)}] = {events.start_seconds(i),
                                               events.end_seconds(i)};
  }
  return spans;
}

TEST(ReplicasTest, EachRunsAsIfAlone) {
  Measured measured;
  measured.schedule = "1f1b";
  measured.num_ranks = 3;
  measured.num_microbatches = 5;
  measured.num_replicas = 3;
  measured.forward_seconds = {1, 2, 1.5};
  measured.backward_seconds = {2, 3, 2.5};
  measured.activation_bytes = {20, 30, 40};
  std::vector<Edge> edges;
  for (int replica = 0; replica < 3; ++replica) {
    edges.push_back({3 * replica, 3 * replica + 1, 1});
    edges.push_back({3 * replica + 1, 3 * replica + 2, 1});
  }
  const auto schedule = schedules::GenerateSchedule("1f1b", {3, 5, 1, 1});
  ASSERT_TRUE(schedule.ok());
  oracle::Costs costs;
  costs.forward_seconds = measured.forward_seconds;
  costs.backward_seconds = measured.backward_seconds;
  // A gradient has the size of its activation.
  costs.transfer_seconds = [&](const schedules::Action& producer) {
    const int boundary = producer.op == schedules::Op::kForward
                             ? producer.stage
                             : producer.stage - 1;
    return measured.activation_bytes[boundary] / 100;
  };
  const auto timing = oracle::Evaluate(*schedule, costs);
  ASSERT_TRUE(timing.ok());
  const Result result = RunReplicas(Resolve(measured, Mesh(9, edges)));
  const auto& actions = result.timeline().actions();
  int event = 0;
  for (int gpu = 0; gpu < 9; ++gpu) {
    for (size_t i = 0; i < schedule->rank_actions[gpu % 3].size(); ++i) {
      ASSERT_EQ(actions.gpu(event), static_cast<uint32_t>(gpu));
      EXPECT_NEAR(actions.start_seconds(event++),
                  timing->start_seconds[gpu % 3][i], 1e-9);
    }
    EXPECT_EQ(result.ranks(gpu).peak_memory_bytes(),
              result.ranks(gpu % 3).peak_memory_bytes());
  }
  const auto& transfers = result.timeline().transfers();
  ASSERT_EQ(transfers.from_gpu_size(), 3 * 2 * 2 * 5);
  for (int i = 0; i < transfers.from_gpu_size(); ++i) {
    EXPECT_EQ(transfers.from_gpu(i) / 3, transfers.to_gpu(i) / 3);
    const int boundary =
        transfers.stage(i) -
        (transfers.kind(i) == Timeline::Transfers::ACTIVATION ? 0 : 1);
    EXPECT_EQ(transfers.bytes(i), measured.activation_bytes[boundary]);
  }
}

// Replica 1 has slower links, so its ranks finish later. A reduction starts
// when both replicas are ready, and only the reduction itself is exposed.
TEST(ReplicasTest, AReductionWaitsForTheSlowestReplica) {
  Measured measured;
  measured.num_ranks = 2;
  measured.num_microbatches = 1;
  measured.num_replicas = 2;
  measured.forward_seconds = {1, 1};
  measured.backward_seconds = {2, 2};
  measured.activation_bytes = {1000, 0};
  measured.parameter_bytes = {300, 400};
  const Result result = RunReplicas(Resolve(
      measured, Mesh(4, {{0, 1, 10}, {2, 3, 1}, {0, 2, 1}, {1, 3, 1}})));
  // Replica 0: F 0..1, transfer 1 s, F B 2..5, transfer 1 s, B 6..8. Replica 1:
  // F 0..1, transfer 10 s, F B 11..14, transfer 10 s, B 24..26. Two members:
  // bytes / 100.
  const auto reductions = Reductions(result);
  for (int gpu : {0, 2}) {
    EXPECT_NEAR(reductions.at({gpu, 0}).first, 26, 1e-9);
    EXPECT_NEAR(reductions.at({gpu, 0}).second, 29, 1e-9);
  }
  for (int gpu : {1, 3}) {
    EXPECT_NEAR(reductions.at({gpu, 1}).first, 14, 1e-9);
    EXPECT_NEAR(reductions.at({gpu, 1}).second, 18, 1e-9);
  }
  EXPECT_NEAR(result.makespan_seconds(), 29, 1e-9);
  // Exposed transfers and the reduction.
  EXPECT_NEAR(result.ranks(0).exposed_communication_seconds(), 1 + 3, 1e-9);
  EXPECT_NEAR(result.ranks(1).exposed_communication_seconds(), 1 + 4, 1e-9);
  EXPECT_NEAR(result.ranks(2).exposed_communication_seconds(), 10 + 3, 1e-9);
  EXPECT_NEAR(result.ranks(3).exposed_communication_seconds(), 10 + 4, 1e-9);
}

// The links depend on the placement of a rank, not on its number.
TEST(ReplicasTest, PlacementDecidesTheLinks) {
  Measured measured;
  measured.num_ranks = 2;
  measured.forward_seconds = {1, 1};
  measured.backward_seconds = {2, 2};
  measured.activation_bytes = {1000, 0};
  scenarios::ResolvedScenario resolved = Resolve(
      measured, Mesh(4, {{0, 1, 10}, {1, 2, 10}, {2, 3, 10}, {1, 3, 1}}));
  resolved.placement.gpus = {3, 1};
  EXPECT_NEAR(RunReplicas(resolved).makespan_seconds(), 6 + 2 * 10, 1e-9);
  resolved.placement.gpus = {2, 1};
  EXPECT_NEAR(RunReplicas(resolved).makespan_seconds(), 6 + 2 * 1, 1e-9);
}

// Three GPUs in a triangle have two rings, one in each direction, with half the
// bytes each.
TEST(ReplicasTest, RingsShareTheBytes) {
  Measured measured;
  measured.num_replicas = 3;
  measured.forward_seconds = {1};
  measured.backward_seconds = {2};
  measured.activation_bytes = {0};
  measured.parameter_bytes = {1200};
  const Result result = RunReplicas(
      Resolve(measured, Mesh(3, {{0, 1, 1}, {1, 2, 1}, {2, 0, 1}})));
  // Each hop of each ring carries 2 x 2/3 of 600 bytes.
  EXPECT_NEAR(result.makespan_seconds(), 3 + 8, 1e-9);
}

// Two stages of a rank are reduced one after the other, not concurrently.
TEST(ReplicasTest, ReductionsOfARankQueue) {
  Measured measured;
  measured.schedule = "interleaved-1f1b";
  measured.num_ranks = 2;  // layers: the two stages of one rank
  measured.num_microbatches = 2;
  measured.num_replicas = 2;
  measured.forward_seconds = {1, 1};
  measured.backward_seconds = {2, 2};
  measured.activation_bytes = {0, 0};
  measured.parameter_bytes = {300, 500};
  for (bool overlapped : {false, true}) {
    measured.overlapped_reduction = overlapped;
    scenarios::ResolvedScenario resolved =
        Resolve(measured, Mesh(2, {{0, 1, 1}}));
    resolved.placement = {1, 2, 1, {0, 1}};
    resolved.scenario.mutable_parallelism()->set_pipeline(1);
    resolved.scenario.mutable_parallelism()->set_chunks(2);
    const Result result = RunReplicas(resolved);
    const auto reductions = Reductions(result);
    // The last backward of stage 0 ends at 12, that of stage 1 at 8 or 10.
    const auto [first_start, first_end] = reductions.at({0, 1});
    const auto [second_start, second_end] = reductions.at({0, 0});
    if (overlapped) {
      EXPECT_LT(first_start, 11);
      EXPECT_NEAR(first_end - first_start, 5, 1e-9);
      EXPECT_NEAR(second_start, std::max(first_end, 12.0), 1e-9);
      EXPECT_NEAR(second_end - second_start, 3, 1e-9);
      EXPECT_NEAR(result.makespan_seconds(), second_end, 1e-9);
    } else {
      EXPECT_NEAR(std::min(first_start, second_start), 12, 1e-9);
      EXPECT_NEAR(first_end - first_start, 5, 1e-9);
      EXPECT_NEAR(second_end - second_start, 3, 1e-9);
      EXPECT_NEAR(result.makespan_seconds(), 20, 1e-9);
      EXPECT_NEAR(result.ranks(0).exposed_communication_seconds(), 8, 1e-9);
    }
  }
}

}  // namespace weir::sim::replicas_test
