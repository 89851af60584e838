// SPDX-License-Identifier: Apache-2.0
// Checks Monte Carlo samples against closed forms.
#include "plan/stragglers/jitter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

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
  for (const char* text :
       {"", "pass", "pass=", "pass=normal", "pass=normal:-1", "pass=normal:4",
        "pass=normal:x", "pass3=normal:0.1", "gpu-1=normal:0.1",
        "link=normal:0.1", "pass=periodic:0:2", "pass=periodic:2",
        "pass=constant:nan", "pass=gamma:1"}) {
    EXPECT_THAT(std::string(ParseJitterSource(text).status().message()),
                HasSubstr("expected pass, gpu, gpuN"))
        << text;
  }
  const absl::Status status =
      CheckSources(RunOf({}), Request({"gpu4=constant:2"}).sources);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("expected a GPU from 0 to 3"));
}

}  // namespace
}  // namespace weir::plan::jitter_test
