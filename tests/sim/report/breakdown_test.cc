// SPDX-License-Identifier: Apache-2.0
// Checks that the parts of a batch add up to its time.
#include "sim/report/breakdown.h"

#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "schedules/registry.h"
#include "sim/simulate.h"
#include "tests/sim/by_costs.h"
#include "tests/sim/given_scenario.h"
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

// The parts of the mean GPU, which are disjoint, add up to the step too.
void ExpectMeanSum(const Result& result) {
  const StepBreakdown& mean = result.breakdown();
  const double seconds[] = {mean.compute_seconds(),
                            mean.tensor_communication_seconds(),
                            mean.expert_communication_seconds(),
                            mean.pipeline_transfer_seconds(),
                            mean.data_communication_seconds(),
                            mean.optimizer_seconds(),
                            mean.bubble_seconds(),
                            mean.rollback_seconds()};
  double sum = 0;
  for (const double part : seconds) {
    EXPECT_GE(part, 0);
    sum += part;
  }
  EXPECT_NEAR(sum, result.batch_seconds(), 1e-9 * result.batch_seconds());
  EXPECT_NEAR(
      mean.pipeline_transfer_seconds() + mean.data_communication_seconds() +
          mean.bubble_seconds(),
      result.idle_ratio() * (result.batch_seconds() - mean.rollback_seconds()),
      1e-9 * result.batch_seconds());
}

// Rank 0 computes 6 of 11 s, waits 1 s for a transfer and 4 s for rank 1. Rank
// 1 computes 6 s and waits for the activation at 2..3: until 2 s for rank 0 to
// compute it, then for its transfer.
TEST(StepBreakdownTest, IsTheMeanOverGpus) {
  Measured measured;
  measured.num_ranks = measured.num_microbatches = 2;
  measured.forward_seconds = {1, 1};
  measured.backward_seconds = {2, 2};
  measured.activation_bytes = {10, 0};
  const auto result = Simulate(Resolve(measured, ChainOfLinks(2, 10, 0)));
  ASSERT_TRUE(result.ok()) << result.status();
  ExpectMeanSum(*result);
  const StepBreakdown& mean = result->breakdown();
  EXPECT_NEAR(mean.compute_seconds(), 6, 1e-9);
  EXPECT_NEAR(mean.pipeline_transfer_seconds() + mean.bubble_seconds(), 5,
              1e-9);
  EXPECT_GE(mean.pipeline_transfer_seconds(), 1 - 1e-9);
  EXPECT_EQ(mean.tensor_communication_seconds(), 0);
  EXPECT_EQ(mean.optimizer_seconds(), 0);
}

// Without transfers, the bubble of GPipe is (p - 1) / (m + p - 1).
TEST(StepBreakdownTest, BubbleHasTheClosedForm) {
  GivenScenario given;
  given.schedule = "gpipe";
  given.num_ranks = 4;
  given.num_microbatches = 8;
  given.hop_seconds = 0;
  const auto result = Simulate(Resolve(given));
  ASSERT_TRUE(result.ok()) << result.status();
  ExpectMeanSum(*result);
  EXPECT_NEAR(result->breakdown().bubble_seconds() / result->batch_seconds(),
              3.0 / 11, 1e-9);
}

TEST(StepBreakdownTest, AddsUpForEverySchedule) {
  int num_run = 0;
  for (const schedules::ScheduleKind& kind : schedules::AllScheduleKinds()) {
    for (const bool blocking : {false, true}) {
      for (const int chunks : {1, 2}) {
        GivenScenario given;
        given.schedule = std::string(kind.name);
        given.weight_gradient_seconds = {1};
        given.hop_seconds = 0.25;
        given.blocking = blocking;
        given.num_chunks = chunks;
        given.num_ranks = 4;
        given.num_microbatches = 8;
        const auto result = Simulate(Resolve(given));
        if (!result.ok()) continue;  // illegal chunks, or a deadlock
        SCOPED_TRACE(absl::StrCat(kind.name, blocking ? ", blocking" : "",
                                  ", chunks ", chunks));
        ExpectMeanSum(*result);
        ++num_run;
      }
    }
  }
  EXPECT_GE(num_run, std::ssize(schedules::AllScheduleKinds()));
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
    ExpectMeanSum(*result);
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
