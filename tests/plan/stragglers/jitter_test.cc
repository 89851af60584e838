// SPDX-License-Identifier: Apache-2.0
// Checks Monte Carlo samples against closed forms.
#include "plan/stragglers/jitter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "models/layer_work.h"
#include "scenarios/scenario.h"
#include "sim/costs/documents.h"
#include "sim/simulate.h"
#include "tests/sim/given_scenario.h"

namespace weir::plan::jitter_test {
namespace {

using sim::GivenScenario;
using testing::Each;
using testing::HasSubstr;

sim::ReplayTasks RunOf(const GivenScenario& given) {
  const auto run = sim::ReplayTasksOfScenario(sim::Resolve(given));
  EXPECT_TRUE(run.ok()) << run.status();
  return *run;
}

JitterRequest Request(const std::vector<std::string>& sources,
                      uint32_t num_samples = 100) {
  JitterRequest request;
  request.num_samples = num_samples;
  for (const std::string& text : sources) {
    const auto source = ParseJitterSource(text);
    EXPECT_TRUE(source.ok()) << source.status();
    request.sources.push_back(*source);
  }
  return request;
}

std::vector<double> Samples(const GivenScenario& given,
                            const std::vector<std::string>& sources,
                            uint32_t num_samples = 100) {
  return SampleStepSeconds(RunOf(given), Request(sources, num_samples));
}

GivenScenario Uneven(const std::string& schedule) {
  GivenScenario given;
  given.schedule = schedule;
  given.forward_seconds = {0.7, 1.1, 0.9, 1.3};
  given.backward_seconds = {1.7, 2.3, 1.9, 2.1};
  if (schedule == "zb-h1") given.weight_gradient_seconds = {0.8, 0.9, 0.7, 1.1};
  given.hop_seconds = 0.37;
  return given;
}

TEST(JitterTest, WithoutJitterTheStepIsTheSimulatedOneToTheLastBit) {
  for (const char* schedule : {"gpipe", "1f1b", "zb-h1"}) {
    const GivenScenario given = Uneven(schedule);
    const auto result = sim::Simulate(sim::Resolve(given));
    ASSERT_TRUE(result.ok()) << result.status();
    const double makespan = result->makespan_seconds();
    EXPECT_THAT(Samples(given, {}), Each(makespan));
    EXPECT_THAT(Samples(given, {"pass=normal:0", "gpu=lognormal:0",
                                "stage=exponential:0", "pass=constant:1"}),
                Each(makespan));
  }
}

// Stages of which a forward takes 1 or 3 times as long, backwards the same
// time.
JitterRequest Recorded(const GivenCosts& costs, uint32_t num_samples) {
  JitterRequest request = Request({"pass=recorded"}, num_samples);
  EXPECT_TRUE(SetRecorded(costs, &request.sources[0]).ok());
  return request;
}

TEST(JitterTest, RecordedTimesHaveTheirMean) {
  GivenScenario given;
  given.num_ranks = 1;
  given.num_microbatches = 1;
  GivenCosts costs = sim::Resolve(given).scenario.costs();
  for (const double factor : {1.0, 1.0, 1.0, 3.0}) {
    costs.mutable_stages(0)->add_forward_factors(factor);
  }
  const std::vector<double> samples =
      SampleStepSeconds(RunOf(given), Recorded(costs, 40000));
  // Forward 1 or 3 s, backward 2 s.
  double sum = 0;
  for (const double each : samples) {
    EXPECT_TRUE(each == 3 || each == 5) << each;
    sum += each;
  }
  // Mean 1.5 + 2; the deviation of the mean of 40,000 is 0.0043.
  EXPECT_NEAR(sum / static_cast<double>(samples.size()), 3.5, 0.02);
}

TEST(JitterTest, RecordedTimesWithoutVarianceAreTheSimulatedOnes) {
  for (const char* schedule : {"gpipe", "1f1b", "zb-h1"}) {
    const GivenScenario given = Uneven(schedule);
    GivenCosts costs = sim::Resolve(given).scenario.costs();
    for (GivenCosts::Stage& stage : *costs.mutable_stages()) {
      for (int i = 0; i < 5; ++i) {
        stage.add_forward_factors(1);
        stage.add_backward_factors(1);
        stage.add_backward_weight_factors(1);
      }
    }
    const auto result = sim::Simulate(sim::Resolve(given));
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_THAT(SampleStepSeconds(RunOf(given), Recorded(costs, 100)),
                Each(result->makespan_seconds()));
  }
}

// All factors 2: the costs of two stages, one entry for all.
TEST(JitterTest, OneEntryOfCostsIsForAllStages) {
  GivenScenario given;
  given.num_ranks = 2;
  GivenCosts costs = sim::Resolve(given).scenario.costs();
  ASSERT_EQ(costs.stages_size(), 1);
  costs.mutable_stages(0)->add_forward_factors(2);
  costs.mutable_stages(0)->add_backward_factors(2);
  GivenScenario twice = given;
  twice.forward_seconds = {2};
  twice.backward_seconds = {4};
  EXPECT_THAT(SampleStepSeconds(RunOf(given), Recorded(costs, 3)),
              Each(RunOf(twice).batch_seconds));
}

// A whole backward has the factors of its parts, each with its part of time.
TEST(JitterTest, WholeBackwardsCombineTheirParts) {
  GivenCosts costs;
  GivenCosts::Stage* stage = costs.add_stages();
  stage->set_forward_seconds(1);
  stage->set_backward_input_seconds(3);
  stage->set_backward_weight_seconds(1);
  stage->add_backward_input_factors(1);
  stage->add_backward_input_factors(2);
  JitterSource source = *ParseJitterSource("pass=recorded");
  ASSERT_TRUE(SetRecorded(costs, &source).ok());
  const std::vector<double>& whole =
      source.recorded.at({0, schedules::Op::kBackward});
  EXPECT_DOUBLE_EQ(whole.front(), 1);
  EXPECT_DOUBLE_EQ(whole.back(), 7.0 / 4);
  stage->clear_backward_input_factors();
  EXPECT_THAT(std::string(SetRecorded(costs, &source).message()),
              HasSubstr("the costs have no factors of passes"));
  EXPECT_FALSE(ParseJitterSource("gpu=recorded").ok());
}

// Without flush, and if batches overlap, a step is a batch of the steady state.
TEST(JitterTest, StepsOfLongRunsAreBatchesOfTheSteadyState) {
  for (const char* schedule : {"pipedream", "pipedream-2bw"}) {
    SCOPED_TRACE(schedule);
    const GivenScenario given = Uneven(schedule);
    const auto result = sim::Simulate(sim::Resolve(given));
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_GT(result->makespan_seconds(), 2 * result->batch_seconds());
    const sim::ReplayTasks run = RunOf(given);
    EXPECT_EQ(run.batch_seconds, result->batch_seconds());
    EXPECT_GT(run.simulated_batches, run.num_batches);
    EXPECT_THAT(Samples(given, {}), Each(result->batch_seconds()));
    EXPECT_THAT(Samples(given, {"pass=normal:0"}),
                Each(result->batch_seconds()));
    // If every pass takes twice as long, and hops nothing, so do steps.
    GivenScenario no_hops = given;
    no_hops.hop_seconds = 0;
    const double step = RunOf(no_hops).batch_seconds;
    for (const double twice : Samples(no_hops, {"pass=constant:2"}, 3)) {
      EXPECT_NEAR(twice, 2 * step, 1e-9 * step);
    }
  }
}

// A constant factor equals the simulation of longer passes.
TEST(JitterTest, AConstantFactorIsThatOfTheCosts) {
  for (const char* schedule : {"gpipe", "1f1b"}) {
    GivenScenario slow = Uneven(schedule);
    slow.forward_seconds[2] *= 1.5;
    slow.backward_seconds[2] *= 1.5;
    const auto result = sim::Simulate(sim::Resolve(slow));
    ASSERT_TRUE(result.ok());
    for (const char* source : {"stage2=constant:1.5", "gpu2=constant:1.5"}) {
      const auto samples = Samples(Uneven(schedule), {source}, 9);
      ASSERT_EQ(samples.size(), 9);
      for (const double seconds : samples) {
        EXPECT_NEAR(seconds, result->makespan_seconds(), 1e-9 * seconds);
      }
    }
  }
}

TEST(JitterTest, EveryFourthPassIsLonger) {
  GivenScenario one;
  one.num_ranks = 1;
  // Of 16 passes, numbers 4, 8, ... are longer: with GPipe, the 4th and 8th
  // forward and backward.
  for (const double seconds : Samples(one, {"pass=periodic:4:2"}, 3)) {
    EXPECT_NEAR(seconds, 8 * 3 + 2 * 1 + 2 * 2, 1e-9);
  }
}

// E[max] of n independent exponential delays is their mean times the n-th
// harmonic number.
TEST(JitterTest, TheExpectedMaximumOfIndependentDelaysIsItsClosedForm) {
  for (const int n : {1, 4, 32}) {
    sim::ReplayTasks run;
    run.first_before = {0};
    for (int gpu = 0; gpu < n; ++gpu) {
      run.seconds.push_back(2);
      run.first_before.push_back(0);
      sim::ReplayTasks::Pass pass;
      pass.task = pass.gpu = pass.replica = gpu;
      run.passes.push_back(pass);
    }
    run.makespan_seconds = 2;
    double harmonic = 0;
    for (int k = 1; k <= n; ++k) harmonic += 1.0 / k;
    for (const char* source : {"pass=exponential:0.1", "gpu=exponential:0.1"}) {
      const JitterStatistics of =
          StatisticsOf(SampleStepSeconds(run, Request({source}, 20000)));
      EXPECT_NEAR(of.mean, 2 * (1 + 0.1 * harmonic), 4 * of.standard_error)
          << n;
      EXPECT_LT(of.standard_error, 0.002);
    }
  }
}

TEST(JitterTest, AverageFactorsAreOne) {
  GivenScenario one;
  one.num_ranks = one.num_microbatches = 1;
  for (const char* source : {"gpu=lognormal:0.3", "gpu=normal:0.1"}) {
    const JitterStatistics of = StatisticsOf(Samples(one, {source}, 20000));
    EXPECT_NEAR(of.mean, 3, 4 * of.standard_error) << source;
  }
}

// On one rank every order takes the sum of the passes, so common random numbers
// give the same samples.
TEST(JitterTest, SchedulesHaveCommonRandomNumbers) {
  GivenScenario gpipe, f1b;
  gpipe.num_ranks = f1b.num_ranks = 1;
  f1b.schedule = "1f1b";
  const std::vector<std::string> sources = {"pass=lognormal:0.4",
                                            "stage=normal:0.1"};
  const auto a = Samples(gpipe, sources), b = Samples(f1b, sources);
  double smallest = a[0], largest = a[0];
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_NEAR(a[i], b[i], 1e-9 * a[i]);
    smallest = std::min(smallest, a[i]);
    largest = std::max(largest, a[i]);
  }
  EXPECT_GT(largest, 1.1 * smallest);
  JitterRequest other = Request(sources);
  other.seed = 2;
  EXPECT_NE(SampleStepSeconds(RunOf(gpipe), other), a);
  EXPECT_EQ(SampleStepSeconds(RunOf(gpipe), Request(sources)), a);
}

TEST(JitterTest, SourcesAreParsed) {
  const auto source = ParseJitterSource("gpu17=periodic:16:1.5");
  ASSERT_TRUE(source.ok());
  EXPECT_EQ(source->only, 17);
  EXPECT_EQ(source->period, 16);
  EXPECT_EQ(source->parameter, 1.5);
  const std::pair<const char*, const char*> kWrong[] = {
      {"", "is , expected pass, gpu, gpuN"},
      {"pass3=normal:0.1", "with pass3, expected pass, gpu, gpuN"},
      {"gpu-1=normal:0.1", "with gpu-1, expected pass, gpu, gpuN"},
      {"link:=normal:0.1", "with link:, expected pass, gpu, gpuN"},
      {"pass", "is pass, expected constant:FACTOR"},
      {"pass=", "is pass=, expected constant:FACTOR"},
      {"pass=gamma:1", "with gamma:1, expected constant:FACTOR"},
      {"pass=normal", "with normal, expected normal:DEVIATION"},
      {"pass=normal:-1", "with normal:-1, expected normal:DEVIATION"},
      {"pass=normal:4", "a deviation of 0 to 3"},
      {"pass=normal:x", "a deviation of 0 to 3"},
      {"pass=constant:nan", "a factor of 0 to 1000"},
      {"link=periodic:2", "expected periodic:PERIOD:FACTOR"},
      {"pass=periodic:0:2", "a period of at least 1"},
      {"pass=periodic:2", "a period of at least 1"},
      {"step=delay:2:1", "a probability of 0 to 1"},
      {"step=delay:0.1:-1", "a probability of 0 to 1"},
      {"pass=file:", "expected file:TIMES.csv"},
      {"sequences=periodic:2:2", "expected a delay or a file for step; packed"},
      {"step=periodic:2:2", "expected a delay or a file for step"},
      {"step=normal:0.1", "expected a delay or a file for step"},
      {"gpu=delay:0.1:2", "a delay only for pass, link and step"},
      {"pass=packed", "packed for sequences"},
      {"sequences=normal:0.1", "packed for sequences"},
  };
  for (const auto& [text, message] : kWrong) {
    EXPECT_THAT(std::string(ParseJitterSource(text).status().message()),
                HasSubstr(message))
        << text;
  }
  const absl::Status status =
      CheckSources(RunOf({}), Request({"gpu4=constant:2"}).sources);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("expected a GPU from 0 to 3"));
}

// With probability p a step takes an exponential delay longer: the part p / q
// of delays is above the quantile 1 - q.
TEST(JitterTest, DelaysOfStepsHaveTheirClosedForm) {
  const double p = 0.2, mean = 0.5;
  const double step = RunOf({}).batch_seconds;
  const JitterStatistics of =
      StatisticsOf(Samples({}, {"step=delay:0.2:0.5"}, 50000));
  EXPECT_EQ(of.median, step);
  EXPECT_NEAR(of.mean, step + p * mean, 4 * of.standard_error);
  EXPECT_NEAR(of.percentile_95, step + mean * std::log(p / 0.05), 0.05 * mean);
  EXPECT_NEAR(of.percentile_99, step + mean * std::log(p / 0.01), 0.1 * mean);
  // A delay of a pass adds to one of 16.
  GivenScenario one;
  one.num_ranks = 1;
  const JitterStatistics passes =
      StatisticsOf(Samples(one, {"pass=delay:0.25:0.1"}, 20000));
  EXPECT_NEAR(passes.mean, 8 * 3 + 16 * 0.25 * 0.1, 4 * passes.standard_error);
}

// A pass of 1 s, then a transfer of 2 s over two links.
sim::ReplayTasks WithTransfer() {
  sim::ReplayTasks run;
  run.seconds = {1, 2};
  run.first_before = {0, 0, 1};
  run.before = {0};
  run.passes.resize(1);
  run.flows = {{.task = 1, .from = 3, .to = 5, .number = 0, .pair = 0}};
  run.pair_links = {{"node0.nic1.tx", "node1.nic0.rx"}};
  return run;
}

TEST(JitterTest, FactorsOfLinksAreThoseOfTheirTransfers) {
  const sim::ReplayTasks run = WithTransfer();
  for (const auto& [source, seconds] :
       std::map<std::string, double>{{"link=constant:3", 7},
                                     {"link:node0.nic1=constant:3", 7},
                                     {"link:node1.nic0.rx=constant:3", 7},
                                     {"link:node0.nic0=constant:3", 3},
                                     {"pass=constant:3", 5}}) {
    EXPECT_THAT(SampleStepSeconds(run, Request({source}, 3)), Each(seconds))
        << source;
  }
  const JitterStatistics of = StatisticsOf(
      SampleStepSeconds(run, Request({"link=lognormal:0.3"}, 9000)));
  EXPECT_NEAR(of.mean, 3, 4 * of.standard_error);
  EXPECT_GT(of.percentile_99, 4);
  EXPECT_TRUE(
      CheckSources(run, Request({"link:node0.nic1=normal:0.1"}).sources).ok());
  EXPECT_THAT(
      std::string(
          CheckSources(run, Request({"link:node0.nic0=normal:0.1"}).sources)
              .message()),
      HasSubstr("expected one such as node1.nic0.rx"));
  EXPECT_THAT(
      std::string(CheckSources(RunOf({}), Request({"link=normal:0.1"}).sources)
                      .message()),
      HasSubstr("given costs have none"));
}

// Two GPUs with GPipe and four microbatches: forwards of 1 s, backwards of 2 s,
// transfers of 0.25 s.
sim::ReplayTasks TwoRanks() {
  constexpr int kMicrobatches = 4;
  sim::ReplayTasks run;
  run.first_before = {0};
  const auto add = [&](double seconds, const std::vector<int32_t>& before) {
    for (const int32_t task : before) {
      if (task >= 0) run.before.push_back(task);
    }
    run.first_before.push_back(static_cast<int32_t>(run.before.size()));
    run.seconds.push_back(seconds);
    return static_cast<int32_t>(run.seconds.size()) - 1;
  };
  int32_t first = -1, last = -1;  // passes of the two ranks
  const auto send = [&](int from, int number, int32_t pass) {
    const int32_t task = add(0.25, {pass});
    run.flows.push_back({.task = task,
                         .from = from,
                         .to = 1 - from,
                         .number = number,
                         .pair = from});
    return task;
  };
  for (int m = 0; m < kMicrobatches; ++m) {
    first = add(1, {first});
    last = add(1, {last, send(0, m, first)});
  }
  for (int m = 0; m < kMicrobatches; ++m) {
    last = add(2, {last});
    first = add(2, {first, send(1, m, last)});
  }
  run.pair_links = {{"node0.nic0.tx", "node1.nic0.rx"},
                    {"node1.nic0.tx", "node0.nic0.rx"}};
  return run;
}

// A longer transfer delays the passes after it by the difference, and a shorter
// one after it does not help. So the step takes 5 forwards, 5 backwards, and
// the longest transfer of each direction.
TEST(JitterTest, EverySecondTransferIsLonger) {
  const sim::ReplayTasks run = TwoRanks();
  EXPECT_THAT(SampleStepSeconds(run, Request({}, 1)), Each(15.5));
  for (const auto& [source, seconds] : std::map<std::string, double>{
           {"link=periodic:2:2", 16},
           {"link=periodic:3:9", 19.5},
           // Only four transfers go from one GPU to the other.
           {"link=periodic:5:9", 15.5},
           {"link:node1.nic0.rx=periodic:2:2", 15.75},
           // A name without direction names two links, each of which counts.
           {"link:node0.nic0=periodic:4:2", 16},
           {"link:node0.nic0=periodic:5:9", 15.5}}) {
    EXPECT_THAT(SampleStepSeconds(run, Request({source}, 3)), Each(seconds))
        << source;
  }
}

// Transfers of 1, 2 and 4 s after each other, the first of which is listed
// last.
TEST(JitterTest, TransfersAreCountedAsTheyStart) {
  sim::ReplayTasks run;
  run.seconds = {1, 2, 4};
  run.first_before = {0, 0, 1, 2};
  run.before = {0, 1};
  run.pair_links = {{"node0.nic0.tx"}};
  for (const int32_t task : {2, 1, 0}) {
    run.flows.push_back(
        {.task = task, .from = 0, .to = 1, .number = task, .pair = 0});
  }
  for (const char* source :
       {"link=periodic:2:3", "link:node0.nic0=periodic:2:3"}) {
    EXPECT_THAT(SampleStepSeconds(run, Request({source}, 1)), Each(1 + 6 + 4));
  }
}

// Passes of 1, 2, 4 and 8 s of the stages 0, 1, 0 and 1 of one GPU.
TEST(JitterTest, PeriodicPassesAreCountedPerStageOrGpu) {
  sim::ReplayTasks run;
  run.seconds = {1, 2, 4, 8};
  run.first_before = {0, 0, 1, 2, 3};
  run.before = {0, 1, 2};
  for (int32_t task = 0; task < 4; ++task) {
    sim::ReplayTasks::Pass& pass = run.passes.emplace_back();
    pass.task = task;
    pass.action.stage = task % 2;
  }
  for (const auto& [source, seconds] :
       std::map<std::string, double>{{"pass=periodic:2:2", 15 + 2 + 8},
                                     {"gpu0=periodic:2:2", 15 + 2 + 8},
                                     {"stage=periodic:2:2", 15 + 4 + 8},
                                     {"stage1=periodic:2:2", 15 + 8}}) {
    EXPECT_THAT(SampleStepSeconds(run, Request({source}, 1)), Each(seconds))
        << source;
  }
}

std::string FileWith(const std::string& text) {
  std::string path = testing::TempDir() + "/jitter_times.csv";
  std::ofstream(path) << text;
  return path;
}

TEST(JitterTest, FilesGiveTheirDistribution) {
  GivenScenario one;
  one.num_ranks = one.num_microbatches = 1;
  for (const char* text :
       {"seconds\n1\n2\n4\n", "rank,step_seconds\n0,1\n0,4\n1,2\n"}) {
    JitterRequest request = Request({"gpu=file:" + FileWith(text)}, 20000);
    const absl::Status read = ReadEmpiricalTimes(&request.sources[0]);
    ASSERT_TRUE(read.ok()) << read;
    EXPECT_EQ(request.sources[0].values, (std::vector<double>{0.5, 1, 2}));
    const auto samples = SampleStepSeconds(RunOf(one), request);
    const JitterStatistics of = StatisticsOf(samples);
    EXPECT_NEAR(of.median, 3, 0.05);
    // Linear between 0.5, 1 and 2.
    EXPECT_NEAR(of.mean, 3 * (0.75 + 1.5) / 2, 4 * of.standard_error);
    request.sources = Request({"step=file:" + FileWith(text)}).sources;
    ASSERT_TRUE(ReadEmpiricalTimes(&request.sources[0]).ok());
    EXPECT_EQ(request.sources[0].values, (std::vector<double>{0, 0, 2}));
  }
  for (const char* text : {"seconds\n", "seconds\n0\n0\n", "seconds\nx\n",
                           "step,time_ms\n1,100\n2,100\n"}) {
    JitterRequest bad = Request({"step=file:" + FileWith(text)});
    EXPECT_FALSE(ReadEmpiricalTimes(&bad.sources[0]).ok()) << text;
  }
}

scenarios::ResolvedScenario Packed(const SequenceLengths& lengths) {
  Scenario scenario;
  scenario.set_model("gpt2");
  scenario.set_cluster("dgx-h100");
  scenario.set_num_nodes(1);
  scenario.mutable_parallelism()->set_pipeline(4);
  scenario.mutable_parallelism()->set_data(2);
  scenario.mutable_training()->set_flash_attention(true);
  scenario.mutable_batch()->set_microbatch_size(2);
  scenario.mutable_batch()->set_global_batch_size(32);
  scenario.mutable_batch()->set_sequence_length(1024);
  *scenario.mutable_batch()->mutable_packed_sequences() = lengths;
  const auto resolved = scenarios::ResolveScenario("test", scenario);
  EXPECT_TRUE(resolved.ok()) << resolved.status();
  return *resolved;
}

std::vector<double> PackedSamples(const scenarios::ResolvedScenario& scenario,
                                  double* step) {
  const auto run = sim::ReplayTasksOfScenario(scenario);
  EXPECT_TRUE(run.ok()) << run.status();
  *step = run->batch_seconds;
  JitterRequest request = Request({"sequences=packed"}, 400);
  EXPECT_TRUE(CheckSources(*run, request.sources).ok());
  SetDocuments(scenario.scenario.batch(),
               sim::DocumentsOfScenario(scenario.scenario).imbalance,
               &request.sources[0]);
  return SampleStepSeconds(*run, request);
}

TEST(JitterTest, EveryTransferIsAConstantFactorToTheLastBit) {
  SequenceLengths lengths;
  lengths.set_fixed(256);
  const auto run = sim::ReplayTasksOfScenario(Packed(lengths));
  ASSERT_TRUE(run.ok()) << run.status();
  ASSERT_GT(run->flows.size(), 10);
  const std::string named = "link:" + run->pair_links[0][0];
  for (const std::string& link : {std::string("link"), named}) {
    const auto constant =
        SampleStepSeconds(*run, Request({link + "=constant:1.7"}, 2));
    EXPECT_EQ(SampleStepSeconds(*run, Request({link + "=periodic:1:1.7"}, 2)),
              constant);
    if (link == "link") {
      EXPECT_GT(constant[0], run->batch_seconds);
    }
    EXPECT_THAT(SampleStepSeconds(*run, Request({link + "=periodic:3:1"}, 2)),
                Each(run->batch_seconds));
  }
}

TEST(JitterTest, DocumentsOfEqualLengthsChangeNothing) {
  SequenceLengths lengths;
  lengths.set_fixed(256);
  double step = 0;
  for (const double seconds : PackedSamples(Packed(lengths), &step)) {
    EXPECT_NEAR(seconds, step, 1e-9 * step);
  }
}

// Drawn documents have the deviation of the renewal-reward theorem, and the
// priced imbalance describes their steps.
TEST(JitterTest, DocumentsHaveTheDeviationOfTheTheorem) {
  SequenceLengths lengths;
  for (const double tokens : {16.0, 64.0}) {
    auto* length = lengths.mutable_histogram()->add_lengths();
    length->set_tokens(tokens);
    length->set_count(1);
  }
  const auto scenario = Packed(lengths);
  JitterSource source;
  SetDocuments(scenario.scenario.batch(), 1, &source);
  double mean = 0, squares = 0;
  for (const double value : source.values) {
    mean += value / static_cast<double>(source.values.size());
  }
  for (const double value : source.values) {
    squares += (value - mean) * (value - mean) /
               static_cast<double>(source.values.size());
  }
  EXPECT_NEAR(mean, 1, 0.02);
  const double expected = sim::AttentionDeviation(
      lengths, {.sequence_length = 1024, .microbatch_size = 2});
  EXPECT_NEAR(std::sqrt(squares), expected, 0.05 * expected);
  double step = 0;
  const JitterStatistics of = StatisticsOf(PackedSamples(scenario, &step));
  EXPECT_NEAR(of.mean, step, 0.01 * step);
  EXPECT_GT(of.largest, of.median);
}

// The attention of all passes of the busiest GPU adds up to its part of the
// step.
TEST(JitterTest, PartsOfPassesThatAreAttentionAddUp) {
  SequenceLengths lengths;
  lengths.set_fixed(256);
  const auto scenario = Packed(lengths);
  const auto run = sim::ReplayTasksOfScenario(scenario);
  const auto result = sim::Simulate(scenario);
  ASSERT_TRUE(run.ok() && result.ok());
  double attention = 0, expected = 0;
  for (const auto& pass : run->passes) {
    if (pass.gpu != static_cast<int>(result->busiest_gpu())) continue;
    attention += pass.attention_part * run->seconds[pass.task];
  }
  for (const PartSeconds& part : result->parts()) {
    if (part.name() == models::Name(models::KernelPart::kAttentionCore)) {
      expected = part.seconds();
    }
  }
  EXPECT_GT(expected, 0);
  EXPECT_NEAR(attention, expected, 0.02 * expected);
}

}  // namespace
}  // namespace weir::plan::jitter_test
