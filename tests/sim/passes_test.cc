// SPDX-License-Identifier: Apache-2.0
// Tests the parts of a pass: its launch by the host, collectives in sequence
// with or overlapped with its kernels, the exchange of experts' tokens, and
// scattered transfers. The costs are given by hand, on a switch of 100 bytes/s:
// an all-reduce of two GPUs takes bytes / 100 seconds.
#include <gtest/gtest.h>

#include <cmath>

#include "sim/costs/schedule_costs.h"
#include "tests/sim/by_costs.h"

namespace weir::sim::passes_test {

using Group = models::LayerCollective::Group;

// A pass takes the longer of the times of the GPU and its host.
TEST(PassesTest, TakeAtLeastWhatTheHostNeedsToLaunchThem) {
  for (const auto& [gpu, host] :
       {std::pair(1.0, 3.0), std::pair(3.0, 1.0), std::pair(2.0, 2.0)}) {
    ByCosts run{.schedule = OnePass(), .costs = OneStage(gpu, 6)};
    run.costs.stages[0].launches.forward_seconds = host;
    run.costs.stages[0].launches.backward_input_seconds = 3;
    run.costs.stages[0].launches.backward_weight_seconds = 4;
    const CostsRun result(run);
    EXPECT_NEAR(result.End(0, 0), std::max(gpu, host), 1e-9);
    EXPECT_NEAR(result.End(0, 1), std::max(gpu, host) + 7, 1e-9);
  }
}

TEST(PassesTest, HostsOfSplitBackwardsLaunchTheirPart) {
  ByCosts run{.schedule = ByHand({{0}}, 1, {Actions({"0F0", "0I0", "0W0"})}),
              .costs = OneStage(1, 3)};
  run.costs.stages[0].launches.backward_input_seconds = 5;
  run.costs.stages[0].launches.backward_weight_seconds = 0.5;
  const CostsRun result(run);
  EXPECT_NEAR(result.End(0, 1), 1 + 5, 1e-9);
  EXPECT_NEAR(result.End(0, 2), 6 + 2, 1e-9);
}

// The host's time includes the collectives of the pass.
TEST(PassesTest, HostsCountTheCollectivesInAPass) {
  for (const auto& [host, end] :
       {std::pair(1.5, 2.0), std::pair(3.0, 3.0), std::pair(0.5, 2.0)}) {
    ByCosts run{.schedule = OnePass(), .costs = OneStage(1, 3), .tensor = 2};
    run.costs.stages[0].communication.forward_collectives = {{.bytes = 100}};
    run.costs.stages[0].launches.forward_seconds = host;
    const CostsRun result(run);
    for (int gpu : {0, 1}) EXPECT_NEAR(result.End(gpu, 0), end, 1e-9);
  }
}

// Collectives that end before a timeline begins are omitted, those that end at
// its beginning are kept.
TEST(PassesTest, TimelinesKeepWhatEndsAtTheirBeginning) {
  ByCosts run{.schedule = OnePass(), .costs = OneStage(1, 3), .tensor = 2};
  run.costs.stages[0].communication.forward_collectives = {{.bytes = 100}};
  const CostsRun result(run);
  const PipelineInputs inputs = result.inputs();
  const auto recording =
      RunTaskGraph(result.graph().tasks, inputs.network.links());
  ASSERT_TRUE(recording.ok()) << recording.status();
  const double end = result.End(0, 0);
  for (const bool later : {false, true}) {
    Timeline timeline;
    timeline.set_from_seconds(later ? std::nextafter(end, end + 1) : end);
    FillTimeline(inputs, result.graph(), *recording, &timeline);
    EXPECT_EQ(timeline.collectives().gpu_size(), later ? 0 : 2);
  }
}

TEST(PassesTest, HostsLaunchBothOfAPair) {
  for (double overlapped : {1.0, 4.0}) {
    ByCosts run{
        .schedule = ByHand({{0}}, 2, {Actions({"0F0", "0F1&", "0B0", "0B1"})}),
        .costs = OneStage(1, 1)};
    run.costs.stages[0].seconds.overlapped = overlapped;
    run.costs.stages[0].launches.forward_seconds = 1;
    run.costs.stages[0].launches.backward_input_seconds = 1.5;
    const CostsRun result(run);
    EXPECT_NEAR(result.End(0, 1), 1 + std::max(overlapped, 2.5), 1e-9);
    EXPECT_NEAR(result.End(0, 2), result.End(0, 1), 1e-9);
  }
}

// The collective overlaps with the GEMMs of a fused backward. With a split
// backward, I waits for it, and W is unaffected.
TEST(PassesTest, CollectivesRunDuringTheWeightGradient) {
  for (const auto& [bytes, fused, split] :
       {std::tuple(100.0, 6.0, 3.0), std::tuple(1000.0, 10.0, 12.0)}) {
    ByCosts run{.schedule = OnePass(), .costs = OneStage(1, 6), .tensor = 2};
    run.costs.stages[0].communication.backward_collectives = {
        {.bytes = bytes, .overlaps_weight_gradient = true}};
    EXPECT_NEAR(CostsRun(run).End(1, 1), 1 + fused, 1e-9);
    EXPECT_NEAR(CostsRun(run).Times(1).tensor_collective_seconds, fused - 6,
                1e-9);
    run.schedule = ByHand({{0}}, 1, {Actions({"0F0", "0I0", "0W0"})});
    EXPECT_NEAR(CostsRun(run).End(1, 1), 1 + split, 1e-9);
    EXPECT_NEAR(CostsRun(run).End(1, 2), 1 + split + 4, 1e-9);
    // Only W needs the input that sequence parallelism gathers again.
    run.costs.stages[0].communication.backward_collectives = {
        {.bytes = bytes, .overlaps_input_gradient = true}};
    EXPECT_NEAR(CostsRun(run).End(1, 1), 1 + std::max(2.0, bytes / 100), 1e-9);
  }
}

// In-line collectives run one after another; overlapped ones share the links
// with them.
TEST(PassesTest, CollectivesInLineFollowTheKernels) {
  ByCosts run{.schedule = OnePass(), .costs = OneStage(1, 6), .tensor = 2};
  run.costs.stages[0].communication.forward_collectives = {
      {.kind = models::CollectiveKind::kAllGather, .bytes = 100, .count = 3},
      {.kind = models::CollectiveKind::kReduceScatter,
       .bytes = 200,
       .count = 2}};
  EXPECT_NEAR(CostsRun(run).End(0, 0), 1 + 1.5 + 2, 1e-9);
}

// Each GPU sends all tokens except its own share, when the last GPU of the
// expert group has computed them.
TEST(PassesTest, ExpertsMeetAcrossTheReplicasOfTheirGroup) {
  ByCosts run{.schedule = OnePass(), .costs = OneStage(1, 2), .data = 4};
  run.costs.stages[0].communication.forward_collectives = {
      {.kind = models::CollectiveKind::kAllToAll,
       .group = Group::kExpert,
       .bytes = 100}};
  run.costs.stages[0].parameters.expert_gradient_bytes = 0;
  run.costs.expert_parallel = 2;
  // Replica 1 computes longer.
  DeviceCosts slow = run.costs;
  slow.stages[0].seconds.forward = 3;
  run.costs.other_devices = {slow};
  run.costs.gpu_device = {0, 1, 0, 0};
  const CostsRun result(run);
  for (int gpu : {0, 1}) EXPECT_NEAR(result.End(gpu, 0), 3 + 0.5, 1e-9);
  for (int gpu : {2, 3}) EXPECT_NEAR(result.End(gpu, 0), 1 + 0.5, 1e-9);
  EXPECT_NEAR(result.Times(0).expert_exchange_seconds, 2.5, 1e-9);
  EXPECT_NEAR(result.Times(1).expert_exchange_seconds, 0.5, 1e-9);
  EXPECT_NEAR(result.Times(1).tensor_collective_seconds, 0, 1e-9);
  const auto events = result.Events(0, Timeline::Collectives::EXPERT_EXCHANGE);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].bytes, 100);
  EXPECT_NEAR(events[0].start, 1, 1e-9);
  EXPECT_NEAR(events[0].end, 3.5, 1e-9);
}

// A GPU that has all experts sends nothing.
TEST(PassesTest, ExpertsOnOneReplicaExchangeNothing) {
  ByCosts run{.schedule = OnePass(), .costs = OneStage(1, 2), .data = 2};
  run.costs.stages[0].communication.forward_collectives = {
      {.kind = models::CollectiveKind::kAllToAll,
       .group = Group::kExpert,
       .bytes = 100}};
  EXPECT_NEAR(CostsRun(run).End(0, 0), 1, 1e-9);
}

TEST(PassesTest, ExpertsFollowTheTensorCollectives) {
  ByCosts run{
      .schedule = OnePass(), .costs = OneStage(1, 2), .tensor = 2, .data = 2};
  run.costs.stages[0].communication.forward_collectives = {
      {.bytes = 100},
      {.kind = models::CollectiveKind::kAllToAll,
       .group = Group::kExpert,
       .bytes = 100}};
  run.costs.expert_parallel = 2;
  const CostsRun result(run);
  for (int gpu : {0, 1, 2, 3}) {
    EXPECT_NEAR(result.End(gpu, 0), 1 + 1 + 0.5, 1e-9);
    EXPECT_NEAR(result.Times(gpu).tensor_collective_seconds, 1, 1e-9);
    EXPECT_NEAR(result.Times(gpu).expert_exchange_seconds, 0.5, 1e-9);
  }
}

// Two ranks of two GPUs each. The output of a stage has 200 bytes.
struct Scattered {
  scenarios::ResolvedScenario scenario;
  Costs costs = OneStage(1, 2);
  schedules::Schedule schedule =
      ByHand({{0, 1}}, 1, {Actions({"0F0", "0B0"}), Actions({"1F0", "1B0"})});

  Scattered() {
    scenario.placement.tensor = 2;
    scenario.runtime.set_scatters_transfers(true);
    costs.stages[0].communication.output_bytes = 200;
    costs.stages.push_back(costs.stages[0]);
  }
  void Apply() {
    const scenarios::Network network(OneSwitch(4, 100, 0));
    ASSERT_TRUE(ApplySchedule(scenario, network, schedule, &costs).ok());
  }
};

// Each GPU sends half in 1 s. The receivers all-gather it, which transfers half
// again in 1 s.
TEST(PassesTest, ScatteredTransfersAreGatheredWhereTheyArrive) {
  Scattered it;
  it.Apply();
  EXPECT_EQ(it.costs.sent_bytes(0), 100);
  const CostsRun result(
      ByCosts{.schedule = it.schedule, .costs = it.costs, .tensor = 2});
  for (int t : {0, 1}) {
    EXPECT_NEAR(result.Start(2 + t, 0), 1 + 1, 1e-9);
    EXPECT_NEAR(result.End(2 + t, 0), 2 + 1 + 1, 1e-9);
    EXPECT_NEAR(result.End(2 + t, 1), 4 + 2, 1e-9);
    EXPECT_NEAR(result.Start(t, 1), 6 + 1, 1e-9);
    EXPECT_NEAR(result.End(t, 1), 7 + 2 + 1, 1e-9);
  }
}

TEST(PassesTest, TransfersStayWholeWhereNothingIsSaved) {
  Scattered sequence_parallel;
  sequence_parallel.scenario.scenario.mutable_parallelism()
      ->set_sequence_parallel(true);
  Scattered alone;
  alone.scenario.placement.tensor = 1;
  Scattered not_asked;
  not_asked.scenario.runtime.set_scatters_transfers(false);
  for (Scattered* it : {&sequence_parallel, &alone, &not_asked}) {
    it->Apply();
    EXPECT_EQ(it->costs.sent_bytes(0), 200);
    EXPECT_TRUE(it->costs.stages[1].communication.forward_collectives.empty());
    EXPECT_TRUE(it->costs.stages[0].communication.backward_collectives.empty());
  }
  Scattered one_rank;  // has both stages
  one_rank.schedule =
      ByHand({{0, 0}}, 1, {Actions({"0F0", "1F0", "1B0", "0B0"})});
  one_rank.Apply();
  EXPECT_TRUE(
      one_rank.costs.stages[1].communication.forward_collectives.empty());
  EXPECT_TRUE(
      one_rank.costs.stages[0].communication.backward_collectives.empty());
}

// The host launches the all-gathers too.
TEST(PassesTest, GathersOfScatteredTransfersAreLaunched) {
  Scattered it;
  it.scenario.runtime.mutable_collective_launch_seconds()->set_value(0.5);
  it.Apply();
  EXPECT_EQ(it.costs.stages[0].launches.forward_seconds, 0);
  EXPECT_EQ(it.costs.stages[1].launches.forward_seconds, 0.5);
  EXPECT_EQ(it.costs.stages[0].launches.backward_input_seconds, 0.5);
  EXPECT_EQ(it.costs.stages[1].launches.backward_input_seconds, 0);
}

// Stages of an inference pipeline queue two microbatches at each end of a
// transfer, provided that all stages process them in the same order.
TEST(PassesTest, QueuesNeedOneOrderOfMicrobatches) {
  for (const bool one_order : {true, false}) {
    ByCosts run{.schedule = ForwardOnly(2, 8), .costs = OneStage(1, 0)};
    run.costs.stages.push_back(OneStage(10, 0).stages[0]);
    run.costs.stages[0].communication.output_bytes = 10;  // 0.1 seconds
    std::vector<schedules::Action>& second = run.schedule.rank_actions[1];
    if (!one_order) std::swap(second[0], second[1]);
    const CostsRun result(run);
    EXPECT_NEAR(result.Start(0, 5), 5, 1e-9);
    // The fourth transfer waits until the first microbatch has left the second
    // stage, and the seventh forward waits for that transfer.
    EXPECT_NEAR(result.Start(0, 6), one_order ? 1.1 + 10 + 0.1 : 6, 1e-9);
    EXPECT_NEAR(result.Start(0, 7), one_order ? 1.1 + 20 + 0.1 : 7, 1e-9);
  }
}

}  // namespace weir::sim::passes_test
