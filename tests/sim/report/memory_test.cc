// SPDX-License-Identifier: Apache-2.0
#include "sim/report/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "schedules/registry.h"
#include "sim/bounds/least_memory.h"
#include "sim/costs/stage_costs.h"
#include "sim/simulate.h"
#include "tests/sim/by_costs.h"
#include "tests/sim/measured.h"

namespace weir::sim::memory_test {

// Two layers with 10 and 20 bytes of activations, and 400 and 800 bytes of fp32
// parameters.
Measured TwoStages(const std::string& schedule, int num_microbatches) {
  Measured measured;
  measured.schedule = schedule;
  measured.num_ranks = 2;
  measured.num_microbatches = num_microbatches;
  measured.forward_seconds = {1, 1};
  measured.backward_seconds = {2, 2};
  measured.activation_bytes = {10, 20};
  measured.parameter_bytes = {400, 800};
  return measured;
}

// Links so fast that no transfer overlaps with computation.
Cluster FastLinks() { return ChainOfLinks(2, 1e15, 1e-12); }

Result RunTwoStages(const Measured& measured) {
  SimulateOptions options;
  options.keep_timeline = true;
  const auto result = Simulate(Resolve(measured, FastLinks()), options);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : Result();
}

std::map<std::string, double> Classes(const RankResult& rank) {
  std::map<std::string, double> classes;
  for (const MemoryClass& entry : rank.peak_memory_classes()) {
    classes[entry.name()] = entry.bytes();
  }
  return classes;
}

TEST(MemoryTest, GPipeKeepsEveryMicrobatch) {
  const Result result = RunTwoStages(TwoStages("gpipe", 5));
  // fp32 with Adam, in bytes per parameter: 4 of weight, 4 of gradient, 8 of
  // state.
  const auto first = Classes(result.ranks(0));
  EXPECT_EQ(first.at("weights"), 400);
  EXPECT_EQ(first.at("gradients"), 400);
  EXPECT_EQ(first.at("optimizer_state"), 800);
  EXPECT_EQ(first.at("activations"), 5 * 10);
  EXPECT_EQ(first.count("weight_stash"), 0u);
  EXPECT_EQ(Classes(result.ranks(1)).at("activations"), 5 * 20);
  EXPECT_EQ(result.peak_memory_bytes(), result.ranks(1).peak_memory_bytes());
}

TEST(MemoryTest, OneForwardOneBackwardKeepsOnePerRankToTheEnd) {
  const Result result = RunTwoStages(TwoStages("1f1b", 5));
  EXPECT_EQ(Classes(result.ranks(0)).at("activations"), 2 * 10);
  EXPECT_EQ(Classes(result.ranks(1)).at("activations"), 20);
  // At 7 the second gradient has arrived and the third output is being sent.
  EXPECT_NEAR(result.ranks(0).peak_memory_at_seconds(), 7, 1e-9);
  EXPECT_EQ(Classes(result.ranks(0)).at("communication_buffers"), 10 + 10);
}

TEST(MemoryTest, PipeDreamStashesOneVersionLessThanRanksToTheEnd) {
  Measured measured = TwoStages("pipedream", 5);
  measured.num_batches = 2;
  const Result result = RunTwoStages(measured);
  EXPECT_EQ(Classes(result.ranks(0)).at("weight_stash"), 400);
  EXPECT_EQ(Classes(result.ranks(1)).count("weight_stash"), 0u);
}

TEST(MemoryTest, TwoBufferedWeightsStashOneVersionEverywhere) {
  Measured measured = TwoStages("pipedream-2bw", 5);
  measured.num_batches = 3;
  const Result result = RunTwoStages(measured);
  EXPECT_EQ(Classes(result.ranks(0)).at("weight_stash"), 400);
  EXPECT_EQ(Classes(result.ranks(1)).at("weight_stash"), 800);
  EXPECT_EQ(Classes(result.ranks(0)).at("activations"), 2 * 10);
}

// A tensor in flight is held at both ends: by the sender until it is sent, and
// by the receiver until it is used.
TEST(MemoryTest, TransfersHoldABufferAtBothEnds) {
  Measured measured = TwoStages("gpipe", 1);
  measured.parameter_bytes = {};
  SimulateOptions options;
  options.keep_timeline = true;
  // 10 bytes at 10 bytes/s.
  const auto result =
      Simulate(Resolve(measured, ChainOfLinks(2, 10, 0)), options);
  ASSERT_TRUE(result.ok()) << result.status();
  // Rank 0: forward 0..1, sends 1..2, waits. Rank 1 computes 2..5. The gradient
  // is sent 5..6 and used 6..8. Rank 1 holds 20 bytes of its own activations.
  const std::map<double, double> expected[] = {
      {{0, 10}, {1, 20}, {2, 10}, {5, 20}, {8, 0}},
      {{0, 0}, {1, 10}, {2, 20}, {5, 10}, {6, 0}}};
  const auto& memory = result->timeline().memory();
  for (uint32_t rank : {0, 1}) {
    std::map<double, double> samples;
    for (int i = 0; i < memory.gpu_size(); ++i) {
      if (memory.gpu(i) == rank) samples[memory.seconds(i)] = memory.bytes(i);
    }
    ASSERT_EQ(samples.size(), expected[rank].size());
    for (auto [a, b] = std::pair(samples.begin(), expected[rank].begin());
         a != samples.end(); ++a, ++b) {
      EXPECT_NEAR(a->first, b->first, 1e-9);
      EXPECT_EQ(a->second, b->second) << "rank " << rank << " at " << a->first;
    }
  }
}

// Reserved memory counts once, and communication buffers only with more than
// one rank.
TEST(MemoryTest, ReservedAndBuffersOfTheLibraries) {
  for (int num_ranks : {1, 2}) {
    Measured measured = TwoStages("gpipe", 1);
    measured.num_ranks = num_ranks;
    scenarios::ResolvedScenario resolved = Resolve(measured, FastLinks());
    resolved.device.mutable_reserved_bytes()->set_value(1e6);
    resolved.device.mutable_communication_buffer_bytes()->set_value(1e5);
    const auto result = Simulate(resolved);
    ASSERT_TRUE(result.ok()) << result.status();
    auto classes = Classes(result->ranks(0));
    EXPECT_EQ(classes["reserved"], 1e6);
    if (num_ranks == 1) {
      EXPECT_EQ(classes["communication_buffers"], 0);
      EXPECT_FALSE(result->ranks(0).has_communicator_bytes());
    } else {
      EXPECT_GE(classes["communication_buffers"], 1e5);
      EXPECT_LE(classes["communication_buffers"], 1e5 + 10 + 20);
      EXPECT_EQ(result->ranks(0).communicator_bytes(), 1e5);
    }
  }
}

// A rank holds the parameters of all its stages, not those of the stage with
// its number.
TEST(MemoryTest, ChunksOfARankAddUp) {
  Measured measured;
  measured.schedule = "interleaved-1f1b";
  measured.num_ranks = 4;  // layers: two chunks on two ranks
  measured.num_microbatches = 2;
  measured.forward_seconds = {1, 1, 1, 1};
  measured.backward_seconds = {2, 2, 2, 2};
  measured.activation_bytes = {1, 1, 1, 1};
  measured.parameter_bytes = {4, 40, 400, 4000};
  scenarios::ResolvedScenario resolved = Resolve(measured, FastLinks());
  resolved.placement = {1, 1, 2, {0, 1}};
  resolved.scenario.mutable_parallelism()->set_pipeline(2);
  resolved.scenario.mutable_parallelism()->set_chunks(2);
  const auto result = Simulate(resolved);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(Classes(result->ranks(0)).at("weights"), 404);
  EXPECT_EQ(Classes(result->ranks(1)).at("weights"), 4040);
}

// Scratch memory is held only while a backward runs.
TEST(MemoryTest, RecomputationNeedsScratchDuringTheBackward) {
  Measured measured = TwoStages("gpipe", 2);
  measured.parameter_bytes = {};
  scenarios::ResolvedScenario resolved = Resolve(measured, FastLinks());
  resolved.scenario.mutable_training()->set_recompute(RECOMPUTE_FULL);
  SimulateOptions options;
  options.keep_timeline = true;
  const auto result = Simulate(resolved, options);
  ASSERT_TRUE(result.ok()) << result.status();
  const auto classes = Classes(result->ranks(1));
  EXPECT_EQ(classes.at("activations"), 2 * 10);
  EXPECT_EQ(classes.at("recompute_scratch"), 20);
  const auto& memory = result->timeline().memory();
  std::map<int, double> last;
  for (int i = 0; i < memory.gpu_size(); ++i) {
    last[memory.gpu(i)] = memory.bytes(i);
  }
  EXPECT_EQ(last[0], 0);
  EXPECT_EQ(last[1], 0);
}

// Overlapped reductions of a batch read gradients while the next batch
// accumulates its own.
TEST(MemoryTest, OverlappedReductionsNeedASecondGradient) {
  for (const auto& [schedule, overlapped, replicas, copies] :
       {std::tuple("pipedream-2bw", true, 2, 2),
        std::tuple("pipedream-2bw", false, 2, 1),
        std::tuple("pipedream-2bw", true, 1, 1),
        std::tuple("1f1b", true, 2, 1)}) {
    Measured measured = TwoStages(schedule, 4);
    measured.num_replicas = replicas;
    measured.overlapped_reduction = overlapped;
    if (std::string(schedule) == "pipedream-2bw") measured.num_batches = 3;
    const auto result =
        Simulate(Resolve(measured, OneSwitch(2 * replicas, 1e15, 0)));
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(Classes(result->ranks(0)).at("gradients"), 400 * copies)
        << schedule << overlapped << replicas;
  }
}

// I frees the activations and leaves the inputs of W until W is done.
TEST(MemoryTest, SplitBackwardKeepsWhatTheWeightGradientNeeds) {
  schedules::Schedule schedule;
  schedule.name = "split";
  schedule.num_ranks = schedule.num_stages = 1;
  schedule.num_microbatches = 2;
  schedule.routes = {{0}};
  schedule.rank_actions = {{{schedules::Op::kForward, 0, 0},
                            {schedules::Op::kBackwardInput, 0, 0},
                            {schedules::Op::kForward, 0, 1},
                            {schedules::Op::kBackwardInput, 0, 1},
                            {schedules::Op::kBackwardWeight, 0, 0},
                            {schedules::Op::kBackwardWeight, 0, 1}}};
  schedule.weights.microbatches_per_update = 2;
  const auto semantics = schedules::InterpretSchedule(schedule);
  ASSERT_TRUE(semantics.ok()) << semantics.status();
  Costs costs;
  StageCosts& stage = costs.stages.emplace_back();
  stage.seconds.forward = 1;
  stage.seconds.backward_parts = {2, 4};
  stage.activations.saved_bytes = 100;
  stage.activations.weight_gradient_stash_bytes = 30;
  const scenarios::Network network = scenarios::Network::OfGivenCosts(1, 0);
  const scenarios::Placement placement{1, 1, 1, {0}};
  const Communication communication;
  const PipelineInputs inputs{schedule, *semantics, costs,
                              network,  placement,  communication};
  const PipelineGraph graph = BuildPipelineGraph(inputs);
  const auto recording = RunTaskGraph(graph.tasks, network.links());
  ASSERT_TRUE(recording.ok()) << recording.status();
  const MemoryTimeline memory =
      TraceMemory(inputs, graph, *recording, 0, /*keep_samples=*/true);
  const MemorySample expected[] = {
      {0, 100}, {3, 130}, {6, 60}, {10, 30}, {14, 0}};
  ASSERT_EQ(memory.samples.size(), std::size(expected));
  for (size_t i = 0; i < std::size(expected); ++i) {
    EXPECT_NEAR(memory.samples[i].seconds, expected[i].seconds, 1e-9);
    EXPECT_EQ(memory.samples[i].bytes, expected[i].bytes) << i;
  }
  EXPECT_EQ(memory.peak_bytes, 130);
  EXPECT_EQ(memory.final_bytes, memory.floor_bytes);
}

// Memory that is handed over at a point in time is never counted twice, such as
// a received input that the forward keeps, or a buffer that the next send
// reuses. The peak is a level that the timeline actually stays at.
TEST(MemoryTest, PeakIsTheLargestSample) {
  for (const char* schedule : {"gpipe", "1f1b", "pipedream-2bw"}) {
    for (double bytes_per_second : {5.0, 40.0, 1e15}) {
      SimulateOptions options;
      options.keep_timeline = true;
      const auto result =
          Simulate(Resolve(TwoStages(schedule, 4),
                           ChainOfLinks(2, bytes_per_second, 1e-12)),
                   options);
      ASSERT_TRUE(result.ok()) << result.status();
      const auto& memory = result->timeline().memory();
      std::map<int, double> largest;
      for (int i = 0; i < memory.gpu_size(); ++i) {
        double& peak = largest[memory.gpu(i)];
        peak = std::max(peak, memory.bytes(i));
      }
      for (int rank = 0; rank < 2; ++rank) {
        EXPECT_EQ(result->ranks(rank).peak_memory_bytes(), largest[rank])
            << schedule << " " << bytes_per_second << " rank " << rank;
      }
    }
  }
}

TEST(MemoryTest, ReturnsToItsFloor) {
  for (const char* schedule : {"gpipe", "1f1b", "pipedream", "pipedream-2bw"}) {
    Measured measured = TwoStages(schedule, 6);
    const bool flush =
        schedule == std::string("gpipe") || schedule == std::string("1f1b");
    measured.num_batches = flush ? 1 : 4;
    const Result result = RunTwoStages(measured);
    const auto& memory = result.timeline().memory();
    std::map<int, double> last;
    for (int i = 0; i < memory.gpu_size(); ++i) {
      last[memory.gpu(i)] = memory.bytes(i);
    }
    // Only weights, gradients and states remain.
    EXPECT_EQ(last[0], 400 + 400 + 800) << schedule;
    EXPECT_EQ(last[1], 800 + 800 + 1600) << schedule;
  }
}

// The temporary memory of eager passes is held only while they run.
TEST(MemoryTest, ScratchLastsAsLongAsItsPass) {
  ByCosts run{.schedule = ByHand({{0}}, 1, {Actions({"0F0", "0I0", "0W0"})}),
              .costs = OneStage(1, 3)};
  StageCosts& stage = run.costs.stages[0];
  stage.activations.saved_bytes = 100;
  stage.activations.forward_scratch_bytes = 30;
  stage.activations.backward_scratch_bytes = 20;
  stage.activations.recompute_scratch_bytes = 7;
  stage.activations.weight_gradient_stash_bytes = 10;
  const MemoryTimeline memory = CostsRun(run).Memory(0);
  const std::pair<double, double> expected[] = {
      {0, 130}, {1, 127}, {2, 10}, {4, 0}};
  ASSERT_EQ(memory.samples.size(), std::size(expected));
  for (size_t i = 0; i < std::size(expected); ++i) {
    EXPECT_NEAR(memory.samples[i].seconds, expected[i].first, 1e-9);
    EXPECT_EQ(memory.samples[i].bytes, expected[i].second);
  }
}

TEST(MemoryTest, EveryPredictedCopyOfTheWeightsCounts) {
  for (int copies : {0, 1, 2}) {
    ByCosts run{.schedule = OnePass(), .costs = OneStage(1, 2)};
    run.schedule.weights.predicted_copies = copies;
    run.costs.stages[0].parameters.weight_bytes = 400;
    run.costs.stages[0].activations.saved_bytes = 100;
    const CostsRun result(run);
    EXPECT_EQ(result.PeakOf(0, MemoryClass::PREDICTED_WEIGHTS), 400 * copies);
    EXPECT_EQ(result.Memory(0).peak_bytes, 400 * (1 + copies) + 100);
    EXPECT_EQ(LeastPeakBytes(result.inputs())[0], 400 * (1 + copies) + 100);
  }
}

// 16-bit gradients are widened to fp32 while the optimizer step runs, for the
// shard that the replica updates.
TEST(MemoryTest, WidenedGradientsLastAsLongAsTheStep) {
  for (int shards : {1, 2}) {
    ByCosts run{.schedule = OnePass(), .costs = OneStage(1, 2), .data = shards};
    StageCosts& stage = run.costs.stages[0];
    stage.step.seconds = 0.5;
    stage.parameters.fp32_bytes = 400;
    stage.activations.saved_bytes = 100;
    run.costs.optimizer_shards = shards;
    run.costs.widens_gradients = true;
    const CostsRun result(run);
    const MemoryTimeline memory = result.Memory(0);
    EXPECT_EQ(memory.peak_bytes, 400.0 / shards);
    EXPECT_NEAR(memory.peak_at_seconds, result.StepStart(0, 0), 1e-9);
    EXPECT_EQ(memory.final_bytes, 0);
    run.costs.widens_gradients = false;
    EXPECT_EQ(CostsRun(run).Memory(0).peak_bytes, 100);
  }
}

// Blocks of passes do not fit the separate buffers of a step, so that an
// allocator that caches them holds both.
TEST(MemoryTest, SeparateBuffersOfTheStepAddToWhatPassesLeave) {
  ByCosts run{.schedule = OnePass(), .costs = OneStage(1, 2)};
  StageCosts& stage = run.costs.stages[0];
  stage.step.seconds = 0.5;
  stage.activations.saved_bytes = 100;
  stage.parameters.kept_gradient_bytes = 20;
  stage.step.buffers = {.bytes = 60, .separate_bytes = 40};
  const MemoryTimeline memory = CostsRun(run).Memory(0);
  EXPECT_EQ(memory.peak_bytes, 20 + 100);
  EXPECT_EQ(memory.cached_bytes, 40);
  // The peak may be in the step.
  stage.step.buffers = {.bytes = 160, .separate_bytes = 90};
  const CostsRun larger(run);
  EXPECT_EQ(larger.Memory(0).peak_bytes, 20 + 160);
  EXPECT_EQ(larger.Memory(0).cached_bytes, 100 + 90 - 160);
  EXPECT_EQ(LeastPeakBytes(larger.inputs())[0], 20 + 160);
}

// The last step widens gradients while the stashed version is still held, like
// every step before it.
TEST(MemoryTest, StashedWeightsAreHeldDuringTheLastStep) {
  schedules::ScheduleSpec spec;
  spec.num_ranks = 1;
  spec.num_microbatches = 2;
  spec.num_batches = 2;
  ByCosts run{
      .schedule = schedules::GenerateSchedule("pipedream-2bw", spec).value(),
      .costs = OneStage(1, 2)};
  StageCosts& stage = run.costs.stages[0];
  stage.step.seconds = 0.5;
  stage.parameters.fp32_bytes = 400;
  stage.parameters.stash_bytes = 200;
  stage.activations.saved_bytes = 100;
  run.costs.widens_gradients = true;
  const CostsRun result(run);
  EXPECT_EQ(result.Memory(0).peak_bytes, 400 + 200);
  EXPECT_EQ(result.Memory(0).final_bytes, 0);
  EXPECT_EQ(LeastPeakBytes(result.inputs())[0], 400 + 200);
}

TEST(MemoryTest, ClassesAddUpToTheMemoryInUseAtAnyTime) {
  for (const char* schedule : {"gpipe", "1f1b", "pipedream"}) {
    Measured measured = TwoStages(schedule, 5);
    if (std::string(schedule) == "pipedream") measured.num_batches = 2;
    const Result result = RunTwoStages(measured);
    const auto& total = result.timeline().memory();
    const auto& classes = result.timeline().class_memory();
    ASSERT_GT(classes.gpu_size(), 0) << schedule;
    int next = 0;
    std::map<std::pair<uint32_t, int>, double> now;
    for (int i = 0; i < total.gpu_size(); ++i) {
      for (; next < classes.gpu_size() && classes.gpu(next) == total.gpu(i) &&
             classes.seconds(next) <= total.seconds(i);
           ++next) {
        now[{classes.gpu(next), classes.kind(next)}] = classes.bytes(next);
      }
      double sum = 0;
      for (const auto& [key, bytes] : now) {
        if (key.first == total.gpu(i)) sum += bytes;
      }
      EXPECT_NEAR(sum, total.bytes(i), 1e-9 * total.bytes(i)) << schedule;
    }
    EXPECT_EQ(next, classes.gpu_size());
  }
}

TEST(MemoryTest, PassesNameTheVersionOfTheirWeights) {
  Measured measured = TwoStages("pipedream", 4);
  measured.num_batches = 1;
  const Result result = RunTwoStages(measured);
  const auto& actions = result.timeline().actions();
  ASSERT_EQ(actions.weight_version_size(), actions.gpu_size());
  int largest = 0;
  for (int i = 0; i < actions.gpu_size(); ++i) {
    const bool reads = actions.op(i) <= Timeline::Actions::BACKWARD_INPUT;
    EXPECT_EQ(actions.weight_version(i) >= 0, reads) << i;
    largest = std::max<int>(largest, actions.weight_version(i));
  }
  EXPECT_GT(largest, 0);  // weights change from microbatch to microbatch
}

}  // namespace weir::sim::memory_test
