// SPDX-License-Identifier: Apache-2.0
// Tests the costs that a schedule adds, for weight predictions, compression,
// spans, overlapped pairs and inference, and costs that lack values which a
// schedule needs.
#include "sim/costs/schedule_costs.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "sim/simulate.h"
#include "tests/sim/given_scenario.h"
#include "tests/sim/hand_schedules.h"
#include "tests/sim/measured.h"

namespace weir::sim::schedule_costs_test {

std::map<std::string, double> Classes(const RankResult& rank) {
  std::map<std::string, double> classes;
  for (const MemoryClass& entry : rank.peak_memory_classes()) {
    classes[entry.name()] = entry.bytes();
  }
  return classes;
}

Measured Chain(int num_ranks) {
  Measured measured;
  measured.num_ranks = num_ranks;
  measured.forward_seconds.assign(num_ranks, 1);
  measured.backward_seconds.assign(num_ranks, 2);
  measured.activation_bytes.assign(num_ranks, 1000);
  measured.parameter_bytes.assign(num_ranks, 400);
  return measured;
}

schedules::Schedule TwoRanks() {
  return ByHand({{0, 1}}, 1,
                {Actions({"0F0", "0B0"}), Actions({"1F0", "1B0"})});
}

// A prediction streams weights and averages, and the copy that it writes.
TEST(ScheduleCostsTest, EstimatesOfWeightsTakeTimeAndMemory) {
  using Prediction = schedules::WeightPolicy::Prediction;
  for (const auto& [prediction, forward, backward] :
       {std::tuple(Prediction::kForward, true, false),
        std::tuple(Prediction::kBackward, false, true),
        std::tuple(Prediction::kForwardAndBackward, true, true),
        std::tuple(Prediction::kFirstForwardOfUpdate, true, false),
        std::tuple(Prediction::kNone, false, false)}) {
    for (int buffers : {0, 1}) {
      schedules::Schedule schedule = TwoRanks();
      schedule.weights.prediction = prediction;
      schedule.weights.forward_distance = {2, 0};
      schedule.weights.backward_distance = {1, 0};
      schedule.weights.predicted_copies = 1;
      schedule.weights.estimate_buffers = buffers;
      Measured measured = Chain(2);
      scenarios::ResolvedScenario scenario =
          Resolve(measured, OneSwitch(2, 1e15, 0));
      scenario.device.mutable_memory_bytes_per_second()->set_value(1000);
      const Result result = RunByHand(scenario, schedule);
      // fp32 with Adam: the weights, two states or one buffer, one copy.
      const double seconds = (1 + (buffers == 0 ? 2 : 1) + 1) * 0.4;
      const auto& actions = result.timeline().actions();
      const auto length = [&](int i) {
        return actions.end_seconds(i) - actions.start_seconds(i);
      };
      EXPECT_NEAR(length(0), 1 + forward * seconds, 1e-9);
      EXPECT_NEAR(length(1), 2 + backward * seconds, 1e-9);
      // The last stage uses the newest weights and predicts nothing.
      EXPECT_NEAR(length(3), 1, 1e-9);
      EXPECT_NEAR(length(4), 2, 1e-9);
      auto classes = Classes(result.ranks(0));
      EXPECT_EQ(classes["predicted_weights"], 400);
      EXPECT_EQ(classes["estimate_buffers"], 400 * buffers);
    }
  }
}

// One prediction per update, for any number of microbatches.
TEST(ScheduleCostsTest, OneEstimateServesAnUpdate) {
  schedules::Schedule schedule = ByHand(
      {{0}}, 4,
      {Actions({"0F0", "0F1", "0B0", "0B1", "0F2", "0F3", "0B2", "0B3"})});
  schedule.weights.microbatches_per_update = 2;
  schedule.weights.prediction =
      schedules::WeightPolicy::Prediction::kFirstForwardOfUpdate;
  schedule.weights.forward_distance = {1};
  GivenScenario given;
  given.num_ranks = 1;
  given.prediction_seconds = {0.25};
  const Result result = RunByHand(Resolve(given), schedule);
  EXPECT_NEAR(result.makespan_seconds(), 4 * 3 + 2 * 0.25, 1e-9);
}

// Transfers have a quarter of their fp32 size. One kernel packs and another
// unpacks, and each reads one format and writes the other.
TEST(ScheduleCostsTest, CompressionShortensTransfersForSomeComputation) {
  schedules::Schedule schedule = TwoRanks();
  schedule.compressed_transfers = true;
  Measured measured = Chain(2);
  measured.parameter_bytes = {};
  for (int bits : {0, 16}) {
    scenarios::ResolvedScenario scenario =
        Resolve(measured, OneSwitch(2, 100, 0));
    scenario.device.mutable_memory_bytes_per_second()->set_value(1000);
    scenario.scenario.mutable_communication()->set_compressed_bits_per_element(
        bits);
    const Result result = RunByHand(scenario, schedule);
    const double part = bits == 0 ? 0.25 : 0.5;
    const auto& transfers = result.timeline().transfers();
    ASSERT_EQ(transfers.bytes_size(), 2);
    for (int i : {0, 1}) {
      EXPECT_EQ(transfers.bytes(i), 1000 * part);
      EXPECT_NEAR(transfers.end_seconds(i) - transfers.start_seconds(i),
                  10 * part, 1e-9);
    }
    const double codec = 1 + part;
    EXPECT_NEAR(result.makespan_seconds(),
                2 * (1 + 2) + 4 * codec + 2 * 10 * part, 1e-9);
  }
}

// A span processes several microbatches in one pass: time, bytes and memory
// scale.
TEST(ScheduleCostsTest, SpansScaleEverything) {
  const schedules::Schedule schedule = ByHand(
      {{0, 1}}, 3, {Actions({"0F0-2", "0B0-2"}), Actions({"1F0-2", "1B0-2"})});
  Measured measured = Chain(2);
  measured.num_microbatches = 3;
  const Result result =
      RunByHand(Resolve(measured, OneSwitch(2, 1000, 0)), schedule);
  EXPECT_NEAR(result.makespan_seconds(), 3 * (2 * 3 + 2 * 1), 1e-9);
  EXPECT_EQ(result.timeline().transfers().bytes(0), 3000);
  EXPECT_EQ(Classes(result.ranks(0))["activations"], 3000);
  EXPECT_EQ(result.ranks(0).peak_activation_microbatches(), 3);
  const auto& spans = result.timeline().actions().num_microbatches();
  ASSERT_EQ(spans.size(), 6);  // with one optimizer step per rank
  EXPECT_EQ(spans[3], 3u);
}

// Both passes of a pair start when both can and end together. Unless the costs
// give a time for pairs, they take as long as one after the other.
TEST(ScheduleCostsTest, PairsRunAsOne) {
  const schedules::Schedule schedule =
      ByHand({{0, 1}}, 2,
             {Actions({"0F0", "0F1&", "0B0", "0B1"}),
              Actions({"1F0", "1B0", "1F1", "1B1"})});
  for (const bool has_pair_costs : {false, true}) {
    GivenScenario given;
    given.num_ranks = given.num_microbatches = 2;
    if (has_pair_costs) given.overlapped_seconds = {2.5};
    const Result result = RunByHand(Resolve(given), schedule);
    const double pair = has_pair_costs ? 2.5 : 3;
    const auto& actions = result.timeline().actions();
    // 1F0 1..2 and 1B0 2..4; the pair can start only then.
    for (int i : {1, 2}) {
      EXPECT_NEAR(actions.start_seconds(i), 4, 1e-9);
      EXPECT_NEAR(actions.end_seconds(i), 4 + pair, 1e-9);
    }
    EXPECT_NEAR(result.ranks(0).busy_seconds(), 1 + pair + 2, 1e-9);
    EXPECT_EQ(result.ranks(0).peak_activation_microbatches(), 2);
  }
}

TEST(ScheduleCostsTest, InferenceKeepsNothingForTraining) {
  Measured measured = Chain(3);
  measured.num_microbatches = 1;
  const Result result = RunByHand(
      Resolve(measured, ChainOfLinks(3, 1e15, 1e-12)), ForwardOnly(3, 100));
  EXPECT_TRUE(result.steady_state());
  EXPECT_NEAR(result.batch_seconds(), 1, 1e-9);
  EXPECT_NEAR(result.makespan_seconds(), 102, 1e-9);
  auto classes = Classes(result.ranks(1));
  EXPECT_EQ(classes["weights"], 400);
  EXPECT_EQ(classes.count("gradients"), 0u);
  EXPECT_EQ(classes.count("optimizer_state"), 0u);
  EXPECT_EQ(classes["activations"], 1000);
  EXPECT_EQ(result.ranks(1).peak_activation_microbatches(), 1);
}

// Transfers limit inference if they take longer than any stage.
TEST(ScheduleCostsTest, InferenceIsAsFastAsItsSlowestPart) {
  const Result result =
      RunByHand(Resolve(Chain(3), ChainOfLinks(3, 400, 0)), ForwardOnly(3, 30));
  EXPECT_NEAR(result.batch_seconds(), 2.5, 1e-9);
}

TEST(ScheduleCostsTest, WholeBackwardsCannotBeSplit) {
  const schedules::Schedule schedule =
      ByHand({{0}}, 1, {Actions({"0F0", "0I0", "0W0"})});
  GivenScenario given;
  given.num_ranks = 1;
  const auto by_hand = SimulateSchedule(Resolve(given), schedule);
  EXPECT_EQ(by_hand.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(by_hand.status().message().find("backward_input_seconds (i)"),
            std::string::npos)
      << by_hand.status();
  const auto measured =
      SimulateSchedule(Resolve(Chain(1), OneSwitch(1, 1, 0)), schedule);
  EXPECT_EQ(measured.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(measured.status().message().find("whole backward passes"),
            std::string::npos)
      << measured.status();
}

// A device half as fast takes twice as long, wherever the placement puts it,
// and limits the memory capacity.
TEST(ScheduleCostsTest, UnlikeGpusTakeTheirOwnTime) {
  Cluster cluster = OneSwitch(2, 1e15, 0);
  for (int slow_rank : {0, 1}) {
    scenarios::ResolvedScenario scenario = Resolve(Chain(2), cluster);
    scenario.scenario.mutable_training()->set_precision(FP32);
    auto* transformer = scenario.model.mutable_transformer();
    transformer->set_num_layers(2);
    transformer->set_hidden_size(64);
    transformer->set_num_heads(4);
    transformer->set_num_kv_heads(4);
    transformer->set_head_size(16);
    transformer->set_feed_forward_size(256);
    transformer->set_vocabulary_size(128);
    scenario.scenario.mutable_batch()->set_sequence_length(32);
    scenario.device.mutable_matrix_rates(0)->mutable_peak_flops()->set_value(
        1e6);
    scenario.device.mutable_memory_bytes()->set_value(1e9);
    DeviceProfile slow = scenario.device;
    slow.mutable_matrix_rates(0)->mutable_peak_flops()->set_value(5e5);
    slow.mutable_memory_bytes()->set_value(1e3);
    scenario.other_devices = {slow};
    scenario.gpu_device = {0, 1};  // the second GPU of the cluster
    scenario.placement.gpus = {1 - slow_rank, slow_rank};
    const Result result = RunByHand(scenario, TwoRanks());
    scenario.other_devices.clear();
    scenario.gpu_device.clear();
    const Result alike = RunByHand(scenario, TwoRanks());
    EXPECT_TRUE(alike.fits_memory());
    EXPECT_FALSE(result.fits_memory());
    EXPECT_EQ(result.memory_capacity_bytes(), 1e3);
    for (int rank : {0, 1}) {
      const bool is_slow = scenario.placement.gpus[rank] == 1;
      EXPECT_NEAR(result.ranks(rank).busy_seconds(),
                  (is_slow ? 2 : 1) * alike.ranks(rank).busy_seconds(),
                  1e-9 * alike.makespan_seconds());
    }
    // The same work at three quarters of the peak.
    EXPECT_NEAR(
        result.model_flops_utilization() * 0.75 * result.batch_seconds(),
        alike.model_flops_utilization() * alike.batch_seconds(), 1e-9);
  }
}

// Checks the costs that generators of automatic schedules receive.
TEST(ScheduleCostsTest, GeneratorsKnowTheScenariosCosts) {
  const scenarios::ResolvedScenario scenario =
      Resolve(Chain(2), OneSwitch(2, 500, 0.25));
  const auto costs = ComputeCosts(scenario, 2, {1, 1});
  ASSERT_TRUE(costs.ok()) << costs.status();
  const schedules::PassCosts passes =
      PassCostsOf(scenario, scenarios::Network(scenario.cluster), *costs);
  ASSERT_EQ(passes.stages.size(), 2u);
  EXPECT_EQ(passes.stages[0].forward, 1);
  EXPECT_EQ(passes.stages[0].fused_backward(), 2);
  EXPECT_EQ(passes.stages[0].activation, 1000);
  EXPECT_NEAR(passes.hop, 1000.0 / 500 + 0.25, 1e-12);
}

// Qi et al., 2024, Zero Bubble, Table 5 (1.5B model, ZB-2p) from the times of
// its Table 9. The order depends on the memory that a microbatch holds: 34h +
// 5as and 32h per token and layer, with h 2304, a 24 and s 1024.
TEST(ScheduleCostsTest, MemoryByHandGivesThePublishedIdleRatios) {
  struct Row {
    int num_microbatches;
    double forward, input, weight, hop, published;
  };
  for (const Row& row : {Row{24, 18.522, 18.086, 9.337, 0.601, 0.0433},
                         Row{32, 18.513, 18.086, 9.331, 0.626, 0.0039},
                         Row{64, 18.546, 18.097, 9.321, 0.762, 0.0026}}) {
    Scenario scenario;
    scenario.set_schedule("zb-2p");
    scenario.mutable_parallelism()->set_pipeline(8);
    scenario.set_num_microbatches(row.num_microbatches);
    GivenCosts& costs = *scenario.mutable_costs();
    GivenCosts::Stage& stage = *costs.add_stages();
    stage.set_forward_seconds(row.forward);
    stage.set_backward_input_seconds(row.input);
    stage.set_backward_weight_seconds(row.weight);
    stage.set_activation_bytes(34 * 2304 + 5 * 24 * 1024);
    stage.set_weight_gradient_bytes(32 * 2304);
    costs.set_hop_seconds(row.hop);
    const auto resolved = scenarios::ResolveScenario("test", scenario);
    ASSERT_TRUE(resolved.ok()) << resolved.status();
    const auto result = Simulate(*resolved, {});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_NEAR(result->span_idle_ratio(), row.published, 5e-5);
    for (const RankResult& rank : result->ranks()) {
      EXPECT_LE(rank.peak_memory_bytes(),
                2 * 8 * stage.activation_bytes() * (1 + 1e-12));
    }
  }
}

}  // namespace weir::sim::schedule_costs_test
