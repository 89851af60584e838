// SPDX-License-Identifier: Apache-2.0
// Checks that the parts of a batch add up to its time.
#include "sim/report/breakdown.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "sim/simulate.h"
#include "tests/sim/by_costs.h"
#include "tests/sim/hand_schedules.h"
#include "tests/sim/measured.h"

namespace weir::sim::breakdown_test {

double SecondsOf(const Result& result, const std::string& name) {
  for (const PartSeconds& part : result.parts()) {
    if (part.name() == name) return part.seconds();
  }
  return 0;
}

void ExpectSum(const Result& result) {
  double sum = 0;
  for (const PartSeconds& part : result.parts()) {
    EXPECT_GT(part.seconds(), 0) << part.name();
    EXPECT_LE(part.forward_seconds() + part.backward_seconds(),
              part.seconds() * (1 + 1e-12))
        << part.name();
    sum += part.seconds();
  }
  EXPECT_NEAR(sum, result.batch_seconds(), 1e-9 * result.batch_seconds());
}

// Rank 0 runs F 0..2, B 7..9 and B 9..11; the first gradient is sent at 6..7
// (see gpu_times_test.cc).
TEST(BreakdownTest, OfTwoMeasuredStages) {
  Measured measured;
  measured.num_ranks = measured.num_microbatches = 2;
  measured.forward_seconds = {1, 1};
  measured.backward_seconds = {2, 2};
  measured.activation_bytes = {10, 0};
  const auto result = Simulate(Resolve(measured, ChainOfLinks(2, 10, 0)));
  ASSERT_TRUE(result.ok()) << result.status();
  ExpectSum(*result);
  EXPECT_EQ(result->busiest_gpu(), 0);
  ASSERT_EQ(result->parts_size(), 3);
  EXPECT_EQ(result->parts(0).name(), "given");
  EXPECT_NEAR(result->parts(0).forward_seconds(), 2, 1e-9);
  EXPECT_NEAR(result->parts(0).backward_seconds(), 4, 1e-9);
  EXPECT_NEAR(SecondsOf(*result, "bubble"), 4, 1e-9);
  EXPECT_NEAR(SecondsOf(*result, "transfers"), 1, 1e-9);
}

scenarios::ResolvedScenario Preset(const std::string& name,
                                   const std::string& schedule) {
  auto scenario = scenarios::LoadScenario(name);
  EXPECT_TRUE(scenario.ok()) << scenario.status();
  if (!schedule.empty()) scenario->set_schedule(schedule);
  scenario->mutable_batch()->set_global_batch_size(
      scenario->batch().microbatch_size() * 8 *
      std::max(1u, scenario->parallelism().data()));
  auto resolved = scenarios::ResolveScenario(name, *scenario);
  EXPECT_TRUE(resolved.ok()) << resolved.status();
  return *std::move(resolved);
}

// A kernel may start while the previous one drains.
TEST(BreakdownTest, AddsUpWithGapsBelowZero) {
  scenarios::ResolvedScenario scenario = Preset("pipedream-flush-gpt-2.2b", "");
  Figure* gap = scenario.device.mutable_kernel_gap_seconds();
  gap->set_value(-1e-7);
  gap->set_kind(Figure::MEASURED);
  gap->set_source("test");
  const auto result = Simulate(scenario);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_LT(SecondsOf(*result, "kernel_gaps"), 0);
  double sum = 0;
  for (const PartSeconds& part : result->parts()) sum += part.seconds();
  EXPECT_NEAR(sum, result->batch_seconds(), 1e-9 * result->batch_seconds());
}

TEST(BreakdownTest, AddsUpWithTensorGroupsReplicasAndSharding) {
  for (const char* name : {"llama-2-70b-dgx-h100", "pipedream-2bw-gpt-2.2b",
                           "pipedream-flush-gpt-2.2b"}) {
    SCOPED_TRACE(name);
    const auto result = Simulate(Preset(name, ""));
    ASSERT_TRUE(result.ok()) << result.status();
    ExpectSum(*result);
    EXPECT_GT(SecondsOf(*result, "feed_forward_gemm"), 0);
    EXPECT_EQ(SecondsOf(*result, "given"), 0);
  }
}

TEST(BreakdownTest, AddsUpForEveryKindOfSchedule) {
  for (const char* schedule :
       {"gpipe", "1f1b", "zb-h1", "pipedream", "pipemare", "dualpipe"}) {
    SCOPED_TRACE(schedule);
    scenarios::ResolvedScenario scenario =
        Preset("pipedream-flush-gpt-2.2b", "");
    scenario.scenario.set_schedule(schedule);
    scenario.scenario.mutable_communication()->set_transfers(OVERLAPPED);
    scenario.num_microbatches = 16;  // twice the number of ranks, for DualPipe
    const auto result = Simulate(scenario);
    ASSERT_TRUE(result.ok()) << result.status();
    ExpectSum(*result);
  }
}

TEST(BreakdownTest, ExpertsAreApartFromTensorGroups) {
  Scenario scenario;
  scenario.set_model("mixtral-8x7b");
  scenario.set_cluster("dgx-h100");
  scenario.set_num_nodes(2);
  scenario.set_schedule("1f1b");
  Parallelism& parallelism = *scenario.mutable_parallelism();
  parallelism.set_tensor(2);
  parallelism.set_pipeline(2);
  parallelism.set_data(4);
  parallelism.set_expert(4);
  parallelism.set_sequence_parallel(true);
  scenario.mutable_batch()->set_microbatch_size(1);
  scenario.mutable_batch()->set_global_batch_size(16);
  scenario.mutable_training()->set_precision(MIXED_BF16);
  const auto resolved = scenarios::ResolveScenario("test", scenario);
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  const auto result = Simulate(*resolved);
  ASSERT_TRUE(result.ok()) << result.status();
  ExpectSum(*result);
  EXPECT_GT(SecondsOf(*result, "tensor_collectives"), 0);
  EXPECT_GT(SecondsOf(*result, "expert_collectives"), 0);
}

// Waiting for weights inside a pass counts as an all-gather, not as a
// collective of a tensor group, which does not exist here.
TEST(BreakdownTest, GathersInsideAPassCountOnce) {
  for (const char* schedule : {"1f1b", "dualpipe"}) {
    SCOPED_TRACE(schedule);
    scenarios::ResolvedScenario scenario =
        Preset("pipedream-flush-gpt-2.2b", "");
    scenario.scenario.set_schedule(schedule);
    scenario.scenario.mutable_communication()->set_transfers(OVERLAPPED);
    scenario.scenario.mutable_training()->set_fully_sharded(true);
    scenario.num_microbatches = 16;  // twice the number of ranks, for DualPipe
    const auto result = Simulate(scenario);
    ASSERT_TRUE(result.ok()) << result.status();
    ExpectSum(*result);
    EXPECT_GT(SecondsOf(*result, "gathers"), 0);
    EXPECT_EQ(SecondsOf(*result, "tensor_collectives"), 0);
  }
}

// If the host is much slower than the GPU, the rest of each pass counts as host
// time.
TEST(BreakdownTest, ASlowHostTakesTheRestOfThePass) {
  scenarios::ResolvedScenario scenario = Preset("pipedream-flush-gpt-2.2b", "");
  const auto fast = Simulate(scenario);
  scenario.runtime.mutable_forward_launch_seconds()->set_value(0.1);
  const auto slow = Simulate(scenario);
  ASSERT_TRUE(fast.ok() && slow.ok()) << fast.status() << slow.status();
  ExpectSum(*slow);
  EXPECT_EQ(SecondsOf(*fast, "host"), 0);
  EXPECT_GT(SecondsOf(*slow, "host"), 0.1 * slow->batch_seconds());
}

// Returns `costs` with each pass as a single kernel of the same duration.
Costs OfKernels(Costs costs) {
  costs.model_flops = 1;
  for (StageCosts& stage : costs.stages) {
    const auto kernel = [](double seconds) {
      return std::vector<PricedKernel>{{models::Kernel(), 1, seconds}};
    };
    const BackwardParts& parts = *stage.seconds.backward_parts;
    stage.kernels = {kernel(stage.seconds.forward), kernel(parts.input),
                     kernel(parts.weight)};
  }
  return costs;
}

// Returns the time of each part on one GPU. Checks that they add up to the
// makespan.
std::map<std::string, double> PartsOf(const CostsRun& run, int gpu) {
  const PipelineInputs inputs = run.inputs();
  const auto recording =
      RunTaskGraph(run.graph().tasks, inputs.network.links());
  EXPECT_TRUE(recording.ok()) << recording.status();
  const Window window = {0, run.Makespan()};
  std::map<std::string, double> parts;
  double sum = 0;
  for (const PartSeconds& part : BreakDown(inputs, run.graph(), *recording, gpu,
                                           window, run.Times(gpu))) {
    parts[part.name()] = part.seconds();
    sum += part.seconds();
  }
  EXPECT_NEAR(sum, window.batch_seconds(), 1e-9 * sum);
  return parts;
}

// Copies to and from the host are not passes. The rank computes F in 1 s and B
// in 3 s, and is idle for 2 s during the copy in each direction.
TEST(BreakdownTest, CopiesToTheHostAreNoPasses) {
  ByCosts by_costs = {
      .schedule = ByHand({{0}}, 1, {Actions({"0F0", "0O0", "0R0", "0B0"})}),
      .costs = OfKernels(OneStage(1, 3))};
  by_costs.costs.stages[0].seconds.offload = 2;
  const CostsRun run(by_costs);
  EXPECT_NEAR(run.Makespan(), 1 + 2 * 2 + 3, 1e-9);
  const auto parts = PartsOf(run, 0);
  EXPECT_FALSE(parts.contains("weight_estimates"));
  double idle = run.Makespan();
  for (const auto& [name, seconds] : parts) {
    if (name != "bubble" && name != "transfers") idle -= seconds;
  }
  EXPECT_NEAR(idle, 4, 1e-9);
}

// The pair on rank 1 compresses the gradient that it sends and decompresses the
// activation that it receives, which takes 0.25 s each in addition to kernels.
TEST(BreakdownTest, APairHasTheExtraSecondsOfBoth) {
  ByCosts by_costs = {
      .schedule =
          ByHand({{0, 1}}, 2,
                 {Actions({"0F0", "0F1", "0I0", "0W0", "0I1", "0W1"}),
                  Actions({"1F0", "1I0&", "1F1", "1W0", "1I1", "1W1"})}),
      .costs = OneStage(1, 3)};
  by_costs.schedule.compressed_transfers = true;
  by_costs.costs.stages.resize(2, by_costs.costs.stages[0]);
  by_costs.costs = OfKernels(by_costs.costs);
  for (StageCosts& stage : by_costs.costs.stages) stage.seconds.codec = 0.25;
  const auto parts = PartsOf(CostsRun(by_costs), 1);
  EXPECT_NEAR(parts.at("weight_estimates"), 4 * 0.25, 1e-9);  // two Fs, two Is
}

}  // namespace weir::sim::breakdown_test
