// SPDX-License-Identifier: Apache-2.0
// Operations that planners run thousands of times: bounds, shortened schedules,
// ranked runs. Counters are per second of CPU time.
#include <benchmark/benchmark.h>

#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "schedules/registry.h"
#include "sim/bounds/bound.h"
#include "sim/bounds/pass_order.h"
#include "sim/fast/fast_simulator.h"
#include "sim/fast/steady.h"
#include "tests/bench/cpu_time.h"
#include "tests/sim/given_scenario.h"

namespace weir {
namespace {

void CountPlans(benchmark::State& state) {
  state.counters["plans/s"] = benchmark::Counter(
      static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

// Evaluates the longest path of one schedule, with other costs for every plan.
void BM_BoundOfPlan(benchmark::State& state, const char* name, int num_chunks) {
  schedules::ScheduleSpec spec;
  spec.num_ranks = 8 / num_chunks;
  spec.num_chunks = num_chunks;
  spec.num_microbatches = 32;
  const auto schedule = schedules::GenerateSchedule(name, spec);
  if (!schedule.ok()) return state.SkipWithError("no schedule");
  const sim::PassOrder order(*schedule, false);
  std::mt19937 random(1);
  std::uniform_real_distribution<> draw(0.5, 1.5);
  std::vector<double> drawn(4096);
  for (double& seconds : drawn) seconds = draw(random);
  sim::PassOrder::Buffers buffers;
  const size_t num_passes = order.passes().size();
  size_t at = 0;
  for ([[maybe_unused]] auto _ : state) {
    at = (at + 61) % 2048;
    benchmark::DoNotOptimize(order.Makespan(
        {drawn.data() + at, num_passes},
        {drawn.data() + at + num_passes, order.hops().size()}, {}, &buffers));
  }
  CountPlans(state);
  state.counters["ns/pass"] = benchmark::Counter(
      1e-9 * static_cast<double>(order.num_nodes()) *
          static_cast<double>(state.iterations()),
      benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK_CAPTURE(BM_BoundOfPlan, 1f1b, "1f1b", 1);
BENCHMARK_CAPTURE(BM_BoundOfPlan, interleaved, "interleaved-1f1b", 2);
BENCHMARK_CAPTURE(BM_BoundOfPlan, zb_h1, "zb-h1", 1);

sim::GivenScenario EightStages(int k) {
  sim::GivenScenario given;
  given.schedule = "1f1b";
  given.num_ranks = 8;
  given.num_microbatches = 32;
  given.forward_seconds.clear();
  given.backward_seconds.clear();
  for (int s = 0; s < 8; ++s) {
    given.forward_seconds.push_back(1 + 0.01 * ((7 * s + k) % 13));
    given.backward_seconds.push_back(2 + 0.01 * ((5 * s + k) % 11));
  }
  given.hop_seconds = 0.1;
  return given;
}

std::vector<scenarios::ResolvedScenario> Plans() {
  std::vector<scenarios::ResolvedScenario> plans;
  for (int k = 0; k < 64; ++k) plans.push_back(sim::Resolve(EightStages(k)));
  return plans;
}

// Computes the same bound from scenarios, including the bound over all orders
// and the memory.
void BM_BoundOfScenario(benchmark::State& state) {
  const std::vector<scenarios::ResolvedScenario> plans = Plans();
  sim::Bounder bounder;
  size_t k = 0;
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(bounder.Bound(plans[k++ % plans.size()]));
  }
  CountPlans(state);
}
BENCHMARK(BM_BoundOfScenario);

// Bounds one preset repeatedly.
void BM_BoundOfPreset(benchmark::State& state, const char* name) {
  const auto scenario = scenarios::LoadScenario(name);
  if (!scenario.ok()) return state.SkipWithError("no such preset");
  const auto resolved = scenarios::ResolveScenario(name, *scenario);
  if (!resolved.ok()) return state.SkipWithError("not resolved");
  sim::Bounder bounder;
  for ([[maybe_unused]] auto _ : state)
    benchmark::DoNotOptimize(bounder.Bound(*resolved));
  CountPlans(state);
}
BENCHMARK_CAPTURE(BM_BoundOfPreset, gpt_2_2b, "pipedream-flush-gpt-2.2b");
BENCHMARK_CAPTURE(BM_BoundOfPreset, gpt3_175b, "gpt3-175b-selene");

void BM_FastEstimate(benchmark::State& state) {
  const std::vector<scenarios::ResolvedScenario> plans = Plans();
  sim::FastSimulator ranker;
  size_t k = 0;
  for ([[maybe_unused]] auto _ : state) {
    const double before = CpuSeconds();
    benchmark::DoNotOptimize(ranker.Estimate(plans[k++ % plans.size()]));
    state.SetIterationTime(CpuSeconds() - before);
  }
  CountPlans(state);
}
BENCHMARK(BM_FastEstimate)->UseManualTime();

schedules::ScheduleSpec Large() {
  schedules::ScheduleSpec spec;
  spec.num_ranks = 64;
  spec.num_chunks = 4;
  spec.num_microbatches = 1024;
  return spec;
}

void BM_Shorten(benchmark::State& state, const char* name, int num_chunks) {
  schedules::ScheduleSpec spec = Large();
  spec.num_chunks = num_chunks;
  const auto schedule = schedules::GenerateSchedule(name, spec);
  if (!schedule.ok()) return state.SkipWithError("no schedule");
  int64_t num_actions = 0;
  for (const auto& actions : schedule->rank_actions) {
    num_actions += std::ssize(actions);
  }
  for ([[maybe_unused]] auto _ : state)
    benchmark::DoNotOptimize(sim::ShortenSchedule(*schedule));
  state.counters["ns/action"] = benchmark::Counter(
      1e-9 * static_cast<double>(num_actions) *
          static_cast<double>(state.iterations()),
      benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK_CAPTURE(BM_Shorten, 1f1b, "1f1b", 1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Shorten, interleaved, "interleaved-1f1b", 4)
    ->Unit(benchmark::kMillisecond);

// Generates the order of 64 ranks x 4 chunks x 1,024 microbatches, shortens it,
// evaluates its longest path and extrapolates.
void BM_LargeFastEstimate(benchmark::State& state) {
  sim::GivenScenario given;
  given.schedule = "interleaved-1f1b";
  given.num_ranks = 64;
  given.num_chunks = 4;
  given.num_microbatches = 1024;
  given.hop_seconds = 0.01;
  const scenarios::ResolvedScenario scenario = sim::Resolve(given);
  for ([[maybe_unused]] auto _ : state) {
    sim::FastSimulator ranker;
    const double before = CpuSeconds();
    benchmark::DoNotOptimize(ranker.Estimate(scenario));
    state.SetIterationTime(CpuSeconds() - before);
  }
}
BENCHMARK(BM_LargeFastEstimate)->UseManualTime()->Unit(benchmark::kMillisecond);

// Evaluates the longest path of the same schedule over all passes, without
// shortening.
void BM_LargeBound(benchmark::State& state) {
  for ([[maybe_unused]] auto _ : state) {
    const auto schedule =
        schedules::GenerateSchedule("interleaved-1f1b", Large());
    const sim::PassOrder order(*schedule, false);
    sim::PassOrder::Buffers buffers;
    const std::vector<double> passes(order.passes().size(), 1);
    const std::vector<double> hops(order.hops().size(), 0.01);
    benchmark::DoNotOptimize(order.Makespan(passes, hops, {}, &buffers));
  }
}
BENCHMARK(BM_LargeBound)->Unit(benchmark::kMillisecond);

void BM_LargeGenerated(benchmark::State& state) {
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(
        schedules::GenerateSchedule("interleaved-1f1b", Large()));
  }
}
BENCHMARK(BM_LargeGenerated)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace weir
