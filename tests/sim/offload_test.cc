// SPDX-License-Identifier: Apache-2.0
// Tests the offload and reload of activations.
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "sim/simulate.h"
#include "tests/sim/given_scenario.h"
#include "tests/sim/hand_schedules.h"
#include "tests/sim/measured.h"

namespace weir::sim::offload_test {

// Two forwards of one stage; the activations of the first are offloaded
// meanwhile.
schedules::Schedule OneAway() {
  return ByHand({{0}}, 2,
                {Actions({"0F0", "0O0", "0F1", "0B1", "0R0", "0B0"})});
}

// GPUs on an NVLink switch, with PCIe to the host.
Cluster WithPcie(int num_gpus, double gpu_rate, double uplink_rate) {
  Cluster cluster = OneSwitch(num_gpus, 1e15, 0);
  PcieTree* pcie = cluster.mutable_groups(0)->mutable_node()->mutable_pcie();
  PcieTree::Switch* pcie_switch = pcie->add_switches();
  for (int gpu = 0; gpu < num_gpus; ++gpu) pcie_switch->add_gpus(gpu);
  pcie->set_gpu_bytes_per_second(gpu_rate);
  pcie->set_uplink_bytes_per_second(uplink_rate);
  return cluster;
}

Measured OneStage(int num_replicas) {
  Measured measured;
  measured.num_microbatches = 2;
  measured.num_replicas = num_replicas;
  measured.forward_seconds = {4};
  measured.backward_seconds = {8};
  measured.activation_bytes = {100};
  return measured;
}

// Returns start and end in seconds of the first GPU's offload and reload, by
// operation.
std::map<Timeline::Actions::Op, std::pair<double, double>> Moves(
    const Result& result) {
  std::map<Timeline::Actions::Op, std::pair<double, double>> moves;
  const auto& actions = result.timeline().actions();
  for (int i = 0; i < actions.op_size(); ++i) {
    if (actions.gpu(i) != 0 || actions.op(i) < Timeline::Actions::OFFLOAD)
      continue;
    moves[actions.op(i)] = {actions.start_seconds(i), actions.end_seconds(i)};
  }
  return moves;
}

// F 0..4, O 4..6 overlapped with F 4..8, B 8..16, R 16..18, B 18..26.
TEST(OffloadTest, OverlapsWithComputationAndFreesItsMemory) {
  const Result result =
      RunByHand(Resolve(OneStage(1), WithPcie(1, 50, 1000)), OneAway());
  const auto moves = Moves(result);
  EXPECT_NEAR(moves.at(Timeline::Actions::OFFLOAD).first, 4, 1e-9);
  EXPECT_NEAR(moves.at(Timeline::Actions::OFFLOAD).second, 6, 1e-9);
  EXPECT_NEAR(moves.at(Timeline::Actions::RELOAD).first, 16, 1e-9);
  EXPECT_NEAR(moves.at(Timeline::Actions::RELOAD).second, 18, 1e-9);
  EXPECT_NEAR(result.makespan_seconds(), 26, 1e-9);
  EXPECT_NEAR(result.ranks(0).busy_seconds(), 24, 1e-9);
  EXPECT_NEAR(result.ranks(0).exposed_communication_seconds(), 2, 1e-9);
  const std::map<double, double> expected = {
      {0, 100}, {4, 200}, {6, 100}, {16, 100}, {26, 0}};
  const auto& memory = result.timeline().memory();
  ASSERT_EQ(memory.bytes_size(), static_cast<int>(expected.size()));
  int i = 0;
  for (const auto& [seconds, bytes] : expected) {
    EXPECT_NEAR(memory.seconds(i), seconds, 1e-9);
    EXPECT_EQ(memory.bytes(i++), bytes);
  }
  EXPECT_EQ(result.ranks(0).peak_activation_microbatches(), 2);
}

// Copies overlapped with computation are not a separate part of the batch. It
// has 24 s of passes and 2 s in which the last backward waits for the reload.
TEST(OffloadTest, PartsOfTheBatchAreThePassesAndTheWaiting) {
  const Result result =
      RunByHand(Resolve(OneStage(1), WithPcie(1, 50, 1000)), OneAway());
  ASSERT_EQ(result.parts_size(), 2);
  EXPECT_EQ(result.parts(0).name(), "given");
  EXPECT_NEAR(result.parts(0).forward_seconds(), 8, 1e-9);
  EXPECT_NEAR(result.parts(0).backward_seconds(), 16, 1e-9);
  EXPECT_NEAR(result.parts(0).seconds(), 24, 1e-9);
  EXPECT_NEAR(result.parts(1).seconds(), 2, 1e-9);
}

// With room for one, the second forward waits for the end of the offload.
TEST(OffloadTest, ALimitOfResidentsIsKept) {
  schedules::Schedule schedule = OneAway();
  schedule.resident_activations = 1;
  const Result result =
      RunByHand(Resolve(OneStage(1), WithPcie(1, 50, 1000)), schedule);
  EXPECT_EQ(result.ranks(0).peak_activation_microbatches(), 1);
  EXPECT_NEAR(result.makespan_seconds(), 28, 1e-9);
  for (double bytes : result.timeline().memory().bytes()) {
    EXPECT_LE(bytes, 100);
  }
}

// GPUs under one PCIe switch share its uplink if that is the bottleneck.
TEST(OffloadTest, GpusShareWhatTheClusterSaysTheyShare) {
  for (const auto& [uplink, seconds] : {std::pair(100.0, 2.0), {50.0, 4.0}}) {
    const Result result =
        RunByHand(Resolve(OneStage(2), WithPcie(2, 50, uplink)), OneAway());
    const auto moves = Moves(result);
    EXPECT_NEAR(moves.at(Timeline::Actions::OFFLOAD).second -
                    moves.at(Timeline::Actions::OFFLOAD).first,
                seconds, 1e-9);
    EXPECT_NEAR(moves.at(Timeline::Actions::RELOAD).second -
                    moves.at(Timeline::Actions::RELOAD).first,
                seconds, 1e-9);
  }
}

// If the cluster has no PCIe, the device's rate applies. Without either, the
// simulation fails.
TEST(OffloadTest, TheDeviceKnowsItsHostLink) {
  scenarios::ResolvedScenario scenario =
      Resolve(OneStage(1), OneSwitch(1, 1e15, 0));
  const auto refused = SimulateSchedule(scenario, OneAway());
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(refused.status().message().find("host_bytes_per_second"),
            std::string::npos)
      << refused.status();
  scenario.device.mutable_host_bytes_per_second()->set_value(25);
  const auto moves = Moves(RunByHand(scenario, OneAway()));
  EXPECT_NEAR(moves.at(Timeline::Actions::OFFLOAD).second -
                  moves.at(Timeline::Actions::OFFLOAD).first,
              4, 1e-9);
}

TEST(OffloadTest, CostsByHandSayHowLongItTakes) {
  GivenScenario given;
  given.num_ranks = 1;
  given.num_microbatches = 2;
  given.offload_seconds = {0.5};
  const auto moves = Moves(RunByHand(Resolve(given), OneAway()));
  EXPECT_NEAR(moves.at(Timeline::Actions::OFFLOAD).first, 1, 1e-9);
  EXPECT_NEAR(moves.at(Timeline::Actions::OFFLOAD).second, 1.5, 1e-9);
}

}  // namespace weir::sim::offload_test
