// SPDX-License-Identifier: Apache-2.0
// Tests of activations and optimizer states on the host: copied bytes, exposed
// seconds and freed memory in closed form.
#include "sim/costs/host_offload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/textproto.h"
#include "base/units.h"
#include "results/validate.h"
#include "scenarios/scenario.h"
#include "sim/bounds/bound.h"
#include "sim/costs/scenario_figures.h"
#include "sim/fast/fast_simulator.h"
#include "sim/simulate.h"

namespace weir::sim::host_offload_test {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kBlocks = 8, kMicrobatches = 4;
constexpr double kTokens = 1024, kHidden = 1024;

absl::StatusOr<scenarios::ResolvedScenario> Resolve(const std::string& training,
                                                    int replicas = 1,
                                                    const char* more = "") {
  Scenario scenario;
  const absl::Status parsed = ParseTextProto(
      "test",
      absl::StrCat(R"(
        transformer { num_layers: 8 hidden_size: 1024 num_heads: 16
                      vocabulary_size: 1024 num_positions: 1024 causal: true }
        cluster: "dgx-h100" num_nodes: 1 runtime: "none" schedule: "1f1b"
        parallelism { data: )",
                   replicas, R"( } batch { sequence_length: 1024
        global_batch_size: )",
                   kMicrobatches * replicas,
                   "} training { flash_attention: true ", training, "} ", more),
      &scenario);
  EXPECT_TRUE(parsed.ok()) << parsed;
  return scenarios::ResolveScenario("test", scenario);
}

Costs CostsOf(const scenarios::ResolvedScenario& scenario) {
  auto costs = ComputeCosts(scenario, 1, {1});
  EXPECT_TRUE(costs.ok()) << costs.status();
  return *std::move(costs);
}

Result ResultOf(const scenarios::ResolvedScenario& scenario) {
  auto result = Simulate(scenario, {});
  EXPECT_TRUE(result.ok()) << result.status();
  return *std::move(result);
}

std::string Layers(int n) {
  return absl::StrCat("cpu_offloading_num_layers: ", n);
}

// The rate at which one GPU alone copies.
double LinkRate(const scenarios::ResolvedScenario& scenario) {
  const scenarios::Network network(scenario.cluster);
  double rate = 1e300;
  for (const int32_t link : network.RouteToHost(0).links) {
    rate = std::min(rate, network.links()[link].bytes_per_second);
  }
  return rate;
}

TEST(HostOffloadTest, WindowsDivideTheBlocks) {
  EXPECT_THAT(OffloadWindowEnds(8, 1), ElementsAre(7));
  EXPECT_THAT(OffloadWindowEnds(8, 2), ElementsAre(3, 7));
  EXPECT_THAT(OffloadWindowEnds(8, 3), ElementsAre(2, 5, 7));
  EXPECT_THAT(OffloadWindowEnds(8, 7), ElementsAre(1, 2, 3, 4, 5, 6, 7));
  // A block is copied after it has run.
  for (int blocks = 2; blocks < 40; ++blocks) {
    for (int n = 1; n < blocks; ++n) {
      const std::vector<int> ends = OffloadWindowEnds(blocks, n);
      ASSERT_EQ(std::ssize(ends), n);
      EXPECT_EQ(ends.back(), blocks - 1);
      for (int i = 0; i < n; ++i) EXPECT_GT(ends[i], i);
    }
  }
}

TEST(HostOffloadTest, ActivationsOfTheFirstBlocksLeaveTheGpu) {
  const Costs none = CostsOf(*Resolve(""));
  const StageActivations& all = none.stages[0].activations;
  const double block = (all.saved_bytes - all.end_bytes) / kBlocks;
  for (const int n : {1, 2, 3, 7}) {
    const Costs some = CostsOf(*Resolve(Layers(n)));
    const StageCosts& stage = some.stages[0];
    EXPECT_NEAR(stage.activations.saved_bytes, all.saved_bytes - n * block, 1);
    ASSERT_EQ(std::ssize(stage.offload.windows), n);
    double forward = 0, backward = 0;
    for (const HostOffload::Window& window : stage.offload.windows) {
      EXPECT_NEAR(window.bytes, block, 1);
      forward += window.forward_seconds;
      backward += window.backward_seconds;
    }
    // All blocks but the first overlap with copies. Equal blocks.
    const double window = stage.offload.windows[0].forward_seconds /
                          OffloadWindowEnds(kBlocks, n)[0];
    EXPECT_NEAR(forward / (7 * window), 1, 1e-9);
    EXPECT_GT(backward, forward);
  }
}

// At most the blocks of two windows are on the GPU in addition: with one of 7
// blocks offloaded at a time, two of them.
TEST(HostOffloadTest, TemporaryMemoryIsThatOfTheCopiesInFlight) {
  const Costs none = CostsOf(*Resolve(""));
  const StageActivations& all = none.stages[0].activations;
  const double block = (all.saved_bytes - all.end_bytes) / kBlocks;
  const Costs most = CostsOf(*Resolve(Layers(7)));
  const StageActivations& bytes = most.stages[0].activations;
  // While the last block runs, the 7th is being copied.
  EXPECT_NEAR(bytes.saved_bytes, all.end_bytes + block, 1);
  EXPECT_GE(bytes.backward_scratch_bytes, block);
  EXPECT_LT(bytes.saved_bytes + bytes.backward_scratch_bytes,
            all.saved_bytes + all.backward_scratch_bytes);
  EXPECT_LT(ResultOf(*Resolve(Layers(7))).peak_memory_bytes(),
            ResultOf(*Resolve("")).peak_memory_bytes());
}

// max(0, copy - window) of every copy, in each pass.
TEST(HostOffloadTest, WhatDoesNotFitIntoTheWindowsIsExposed) {
  for (const int n : {1, 3, 7}) {
    const auto scenario = *Resolve(Layers(n));
    const Costs costs = CostsOf(scenario);
    const double rate = LinkRate(scenario);
    double exposed = 0;
    for (const HostOffload::Window& window : costs.stages[0].offload.windows) {
      exposed += std::max(window.bytes / rate - window.forward_seconds, 0.0) +
                 std::max(window.bytes / rate - window.backward_seconds, 0.0);
    }
    EXPECT_NEAR(
        ResultOf(scenario).batch_seconds(),
        ResultOf(*Resolve("")).batch_seconds() + kMicrobatches * exposed,
        1e-9 * ResultOf(scenario).batch_seconds());
    if (n == 7) {
      EXPECT_GT(exposed, 0);
    }
  }
}

// Every pass has a copy per offloaded block, in its window.
TEST(HostOffloadTest, TheTimelineHasTheCopies) {
  for (const int n : {1, 3, 7}) {
    const auto scenario = *Resolve(Layers(n));
    const double rate = LinkRate(scenario);
    const Costs costs = CostsOf(scenario);
    const HostOffload& offload = costs.stages[0].offload;
    SimulateOptions options;
    options.keep_timeline = true;
    const Result result = *Simulate(scenario, options);
    const HostCopies& copies = result.host_copies();
    ASSERT_EQ(copies.gpu_size(), 2 * kMicrobatches * n);
    EXPECT_TRUE(results::ValidateTimeline("", result).ok());
    for (int i = 0; i < copies.gpu_size(); ++i) {
      EXPECT_EQ(copies.bytes(i), offload.windows[copies.block(i)].bytes);
      const double seconds = copies.end_seconds(i) - copies.start_seconds(i);
      EXPECT_NEAR(seconds, copies.bytes(i) / rate, 1e-9 * seconds);
    }
    // In order, at the ends of blocks, and within the pass.
    const auto& actions = result.timeline().actions();
    int next = 0;
    for (int a = 0; a < actions.gpu_size(); ++a) {
      const bool forward = actions.op(a) == Timeline::Actions::FORWARD;
      if (!forward && actions.op(a) != Timeline::Actions::BACKWARD) continue;
      double at = actions.start_seconds(a) +
                  (forward ? offload.forward_before_seconds
                           : offload.backward_before_seconds);
      for (int k = 0; k < n; ++k, ++next) {
        SCOPED_TRACE(absl::StrCat("copy ", next));
        EXPECT_EQ(copies.gpu(next), actions.gpu(a));
        EXPECT_EQ(copies.microbatch(next), actions.microbatch(a));
        EXPECT_EQ(copies.op(next), forward ? Timeline::Actions::OFFLOAD
                                           : Timeline::Actions::RELOAD);
        EXPECT_EQ(copies.block(next), forward ? k : n - 1 - k);
        EXPECT_NEAR(copies.start_seconds(next), at, 1e-9 * at);
        const HostOffload::Window& window = offload.windows[copies.block(next)];
        at += std::max(window.bytes / rate, forward ? window.forward_seconds
                                                    : window.backward_seconds);
        EXPECT_LE(copies.end_seconds(next),
                  actions.end_seconds(a) * (1 + 1e-12));
      }
      // After a forward's last window comes the head, after a backward's the
      // first block and the embedding.
      EXPECT_GT(actions.end_seconds(a), at);
    }
    EXPECT_EQ(next, copies.gpu_size());
  }
}

// Two GPUs share one PCIe switch and its link to the root complex.
TEST(HostOffloadTest, GpusOfANodeShareItsLinks) {
  const auto scenario = *Resolve("optimizer_offload_fraction: 1", 8);
  const scenarios::Network network(scenario.cluster);
  std::vector<int> users(network.links().size());
  for (int gpu = 0; gpu < 8; ++gpu) {
    for (const int32_t link : network.RouteToHost(gpu).links) ++users[link];
  }
  double rate = 1e300;
  for (const int32_t link : network.RouteToHost(0).links) {
    rate = std::min(rate, network.links()[link].bytes_per_second / users[link]);
  }
  Costs costs = CostsOf(scenario);
  const double before = costs.stages[0].step.seconds;
  const HostOffload offload = costs.stages[0].offload;
  schedules::Schedule schedule;
  ASSERT_TRUE(ApplyHostOffload(scenario, network, schedule, &costs).ok());
  EXPECT_NEAR((costs.stages[0].step.seconds - before) /
                  (offload.copied_optimizer_bytes / rate +
                   offload.host_step_bytes / 25e9),
              1, 1e-9);
}

TEST(HostOffloadTest, OptimizerStatesMoveToTheHost) {
  const Costs none = CostsOf(*Resolve(""));
  const StageCosts& gpu = none.stages[0];
  for (const double part : {0.25, 1.0}) {
    const auto scenario =
        *Resolve(absl::StrCat("optimizer_offload_fraction: ", part));
    const Costs costs = CostsOf(scenario);
    const StageCosts& stage = costs.stages[0];
    EXPECT_NEAR(
        stage.parameters.optimizer_state_bytes /
            std::max(gpu.parameters.optimizer_state_bytes * (1 - part), 1e-9),
        part < 1 ? 1 : 0, 1e-9);
    EXPECT_EQ(stage.parameters.weight_bytes, gpu.parameters.weight_bytes);
    EXPECT_NEAR(stage.step.kernel->kernel.bytes,
                gpu.step.kernel->kernel.bytes * (1 - part), 1e-3);
    EXPECT_NEAR(
        stage.offload.copied_optimizer_bytes,
        part * (gpu.parameters.gradient_bytes + gpu.parameters.weight_bytes),
        1e-3);
    EXPECT_NEAR(stage.offload.host_step_bytes,
                part * gpu.step.kernel->kernel.bytes, 1e-3);
    const double added =
        stage.step.kernel->seconds - gpu.step.kernel->seconds +
        stage.offload.copied_optimizer_bytes / LinkRate(scenario) +
        stage.offload.host_step_bytes / 25e9;
    const double seconds = ResultOf(scenario).batch_seconds();
    EXPECT_NEAR(seconds, ResultOf(*Resolve("")).batch_seconds() + added,
                1e-9 * seconds);
  }
}

// A rack of 72 GPUs has 36 hosts, whether or not it is described as a node.
TEST(HostOffloadTest, TheHostsRateIsForEachGpu) {
  for (const auto& [cluster, rate] :
       {std::pair("dgx-h100", 25e9), std::pair("gb200-nvl72", 128e9)}) {
    std::vector<double> seconds;
    for (const int replicas : {1, 4, 8}) {
      Scenario scenario =
          Resolve("optimizer_offload_fraction: 1", replicas)->scenario;
      scenario.set_cluster(cluster);
      scenario.clear_profile();
      const auto resolved = scenarios::ResolveScenario("test", scenario);
      ASSERT_TRUE(resolved.ok()) << resolved.status();
      const Figure& figure =
          resolved->runtime.host_optimizer_bytes_per_second();
      EXPECT_EQ(figure.value(), rate);
      EXPECT_EQ(figure.kind(), Figure::ASSUMED);
      EXPECT_GE(figure.relative_error(), 0.5);
      Costs costs = CostsOf(*resolved);
      const scenarios::Network network(resolved->cluster);
      ASSERT_TRUE(ApplyHostOffload(*resolved, network, {}, &costs).ok());
      const StageCosts& stage = costs.stages[0];
      EXPECT_NEAR(stage.step.host_seconds * rate, stage.offload.host_step_bytes,
                  1e-3);
      seconds.push_back(stage.step.host_seconds);
    }
    EXPECT_NEAR(seconds[1] / seconds[0], 1, 1e-9) << cluster;
    EXPECT_NEAR(seconds[2] / seconds[0], 1, 1e-9) << cluster;
  }
  EXPECT_FALSE(Resolve("")->runtime.has_host_optimizer_bytes_per_second());
}

// Half the rate is twice the time, which is assumed and not given.
TEST(HostOffloadTest, ItsTimeIsAssumed) {
  const std::string all = "optimizer_offload_fraction: 1";
  const char* rate =
      "set_figures: \"runtime.host_optimizer_bytes_per_second=1e10\"";
  const auto scenario = *Resolve(all), slower = *Resolve(all, 1, rate);
  EXPECT_EQ(slower.runtime.host_optimizer_bytes_per_second().value(), 1e10);
  const Result result = ResultOf(scenario);
  const double bytes = CostsOf(scenario).stages[0].offload.host_step_bytes;
  EXPECT_NEAR(ResultOf(slower).batch_seconds() - result.batch_seconds(),
              bytes / 1e10 - bytes / 25e9, 1e-9 * result.batch_seconds());
  const double host = bytes / 25e9;
  EXPECT_GE(result.seconds_by_evidence().assumed(), host * (1 - 1e-9));
  EXPECT_LT(result.seconds_by_evidence().given(),
            1e-9 * result.batch_seconds());
  // The error of the rate is a part of that of the result, which is known
  // without it: --set without an error is exact.
  const double change =
      std::log(1 + host * (std::exp(-0.7) - 1) / result.batch_seconds());
  const Result exact = ResultOf(*Resolve(
      all, 1, "set_figures: \"runtime.host_optimizer_bytes_per_second=25e9\""));
  EXPECT_NEAR(result.uncertainty().figures(),
              std::hypot(exact.uncertainty().figures(), change), 1e-6);
  EXPECT_GT(result.batch_seconds_high(), exact.batch_seconds_high());
  const auto figures = FiguresOf(scenario);
  EXPECT_TRUE(std::any_of(
      figures.begin(), figures.end(), [](const ScenarioFigure& figure) {
        return figure.path == "host_optimizer_bytes_per_second";
      }));
}

TEST(HostOffloadTest, ShardsOfStatesAreOffloaded) {
  const auto of = [](const char* training) {
    return CostsOf(*Resolve(training, 4));
  };
  const Costs whole =
      of("optimizer_offload_fraction: 1 "
         "distributed_optimizer: false");
  const Costs shard =
      of("optimizer_offload_fraction: 1 "
         "distributed_optimizer: true");
  EXPECT_NEAR(whole.stages[0].offload.copied_optimizer_bytes /
                  shard.stages[0].offload.copied_optimizer_bytes,
              4, 1e-9);
  EXPECT_NEAR(whole.stages[0].offload.host_step_bytes /
                  shard.stages[0].offload.host_step_bytes,
              4, 1e-9);
}

TEST(HostOffloadTest, FastRunsAreExactAndBoundsHold) {
  for (const std::string& training :
       {Layers(3), Layers(7), std::string("optimizer_offload_fraction: 0.5")}) {
    const auto scenario = Resolve(training, 2);
    ASSERT_TRUE(scenario.ok()) << scenario.status();
    const Result result = ResultOf(*scenario);
    const auto fast = FastSimulator().Estimate(*scenario);
    ASSERT_TRUE(fast.ok()) << fast.status();
    EXPECT_NEAR(fast->batch_seconds / result.batch_seconds(), 1, 1e-9);
    const auto bound = Bounder().Bound(*scenario);
    ASSERT_TRUE(bound.ok()) << bound.status();
    EXPECT_LE(bound->batch_seconds, result.batch_seconds() * (1 + 1e-9));
    for (const double bytes : bound->peak_bytes) {
      EXPECT_LE(bytes, result.peak_memory_bytes() * (1 + 1e-9));
    }
  }
}

// The model has enough blocks, but its two stages have four each.
TEST(HostOffloadTest, EveryStageKeepsABlock) {
  const auto of = [](int n) {
    Scenario scenario = Resolve(Layers(n), 2)->scenario;
    scenario.mutable_parallelism()->set_data(1);
    scenario.mutable_parallelism()->set_pipeline(2);
    const auto resolved = scenarios::ResolveScenario("test", scenario);
    EXPECT_TRUE(resolved.ok()) << resolved.status();
    return *resolved;
  };
  EXPECT_TRUE(Simulate(of(3), {}).ok());
  const auto message = [&](const absl::Status& status) {
    EXPECT_THAT(
        std::string(status.message()),
        HasSubstr("test: training.cpu_offloading_num_layers is 4, expected at "
                  "most 3: stage 0 has 4 blocks"));
  };
  message(Simulate(of(4), {}).status());
  message(FastSimulator().Estimate(of(4)).status());
}

// One microbatch at a time is in flight without a pipeline.
TEST(HostOffloadTest, ReportsTheMemoryOfTheHost) {
  const auto host = [](const std::string& training) {
    const Result result = ResultOf(*Resolve(training));
    for (const std::string& warning : result.warnings()) {
      if (absl::StartsWith(warning, "host memory: ")) return warning;
    }
    return std::string();
  };
  EXPECT_EQ(host(""), "");
  const StageCosts none = CostsOf(*Resolve("")).stages[0];
  const std::string end =
      " per GPU of activations and optimizer states, which is not checked";
  const double block =
      (none.activations.saved_bytes - none.activations.end_bytes) / kBlocks;
  EXPECT_EQ(host(Layers(3)),
            absl::StrCat("host memory: ", FormatBytes(3 * block), end));
  EXPECT_EQ(host("optimizer_offload_fraction: 0.5"),
            absl::StrCat("host memory: ",
                         FormatBytes(none.parameters.optimizer_state_bytes / 2),
                         end));
}

TEST(HostOffloadTest, WrongCombinationsAreRefused) {
  EXPECT_THAT(std::string(Resolve(Layers(8)).status().message()),
              HasSubstr("training.cpu_offloading_num_layers is 8, expected "
                        "less than the model's 8 blocks"));
  EXPECT_THAT(
      std::string(
          Resolve(Layers(2) + " recompute: RECOMPUTE_FULL").status().message()),
      HasSubstr("training.cpu_offloading_num_layers is 2, expected 0 with "
                "recomputation (full), as in Megatron-LM"));
  EXPECT_THAT(
      std::string(
          Resolve("optimizer_offload_fraction: 1.5").status().message()),
      HasSubstr("training.optimizer_offload_fraction is 1.5"));
}

}  // namespace weir::sim::host_offload_test
