// SPDX-License-Identifier: Apache-2.0
// Cost of the engine per task, for 1F1B pipelines of 8 stages that are
// replicated until they fill the GPUs. The stages differ slightly, so few
// events coincide. BM_Graph builds the tasks, BM_Engine runs them,
// BM_GraphRunner runs them on one reused SimGrid, and BM_LongestPath evaluates
// them without link sharing. "slow" makes links so slow that flows share them
// all the time.
#include <benchmark/benchmark.h>

#include <random>

#include "scenarios/cluster/network.h"
#include "schedules/registry.h"
#include "sim/engine/engine.h"
#include "sim/engine/graph_runner.h"
#include "sim/engine/longest_path.h"
#include "sim/graph/pipeline_graph.h"
#include "tests/bench/cpu_time.h"

namespace weir {
namespace {

constexpr int kRanks = 8;

// Returns one switch over all GPUs with 25 GB/s per direction (5 GB/s if
// `slow`) and 1 us.
scenarios::Network Star(int num_gpus, bool slow) {
  Cluster cluster;
  NodeGroup* group = cluster.add_groups();
  group->set_count(1);
  group->mutable_node()->set_num_gpus(num_gpus);
  group->mutable_node()->mutable_nv_switch()->set_bytes_per_second(slow ? 5e9
                                                                        : 25e9);
  group->mutable_node()->mutable_nv_switch()->set_latency_seconds(1e-6);
  return scenarios::Network(cluster);
}

struct Pipelines {
  Pipelines(int num_gpus, int num_microbatches, bool slow = false)
      : schedule(
            *schedules::GenerateSchedule("1f1b", {kRanks, num_microbatches})),
        semantics(*schedules::InterpretSchedule(schedule)),
        network(Star(num_gpus, slow)) {
    placement.pipeline = kRanks;
    placement.data = num_gpus / kRanks;
    for (int gpu = 0; gpu < num_gpus; ++gpu) placement.gpus.push_back(gpu);
    std::mt19937 random(1);
    std::uniform_real_distribution<> jitter(1.0, 1.3);
    for (int s = 0; s < kRanks; ++s) {
      sim::StageCosts stage;
      stage.seconds.forward = 1e-3 * jitter(random);
      stage.seconds.backward = 2e-3 * jitter(random);
      stage.communication.output_bytes = 16e6;
      costs.stages.push_back(stage);
    }
  }

  sim::PipelineGraph Graph() const {
    return sim::BuildPipelineGraph(
        {schedule, semantics, costs, network, placement, communication});
  }

  schedules::Schedule schedule;
  schedules::Semantics semantics;
  sim::Costs costs;
  scenarios::Network network;
  scenarios::Placement placement;
  Communication communication;
};

void BM_Graph(benchmark::State& state) {
  const Pipelines pipelines(state.range(0), state.range(1));
  int64_t tasks = 0;
  for ([[maybe_unused]] auto _ : state) {
    const double begin = CpuSeconds();
    tasks += pipelines.Graph().tasks.num_tasks();
    state.SetIterationTime(CpuSeconds() - begin);
  }
  state.SetItemsProcessed(tasks);
}

void BM_Engine(benchmark::State& state) {
  const Pipelines pipelines(state.range(0), state.range(1));
  const sim::PipelineGraph graph = pipelines.Graph();
  int64_t tasks = 0;
  for ([[maybe_unused]] auto _ : state) {
    const double begin = CpuSeconds();
    const auto recording =
        sim::RunTaskGraph(graph.tasks, pipelines.network.links());
    if (!recording.ok() || !recording->complete()) {
      state.SkipWithError("the run failed");
    }
    state.SetIterationTime(CpuSeconds() - begin);
    tasks += graph.tasks.num_tasks();
  }
  state.SetItemsProcessed(tasks);
  state.counters["tasks"] = graph.tasks.num_tasks();
  state.counters["peak_MiB"] = PeakMebibytes();
}

// Measures one run of a planner; BM_OneRun measures RunTaskGraph for the same
// tasks.
void BM_GraphRunner(benchmark::State& state) {
  const Pipelines pipelines(kRanks, 32, state.range(0) != 0);
  const sim::PipelineGraph graph = pipelines.Graph();
  sim::GraphRunner runner;
  const double begin = CpuSeconds();
  for ([[maybe_unused]] auto _ : state) {
    const double run_begin = CpuSeconds();
    benchmark::DoNotOptimize(
        runner.Run(graph.tasks, pipelines.network.links()));
    state.SetIterationTime(CpuSeconds() - run_begin);
  }
  state.counters["runs_per_second"] =
      static_cast<double>(state.iterations()) / (CpuSeconds() - begin);
  state.counters["tasks"] = graph.tasks.num_tasks();
}

void BM_OneRun(benchmark::State& state) {
  const Pipelines pipelines(kRanks, 32, state.range(0) != 0);
  const sim::PipelineGraph graph = pipelines.Graph();
  for ([[maybe_unused]] auto _ : state) {
    const double begin = CpuSeconds();
    benchmark::DoNotOptimize(
        sim::RunTaskGraph(graph.tasks, pipelines.network.links()));
    state.SetIterationTime(CpuSeconds() - begin);
  }
}

// Measures the same tasks without link sharing.
void BM_LongestPath(benchmark::State& state) {
  const Pipelines pipelines(state.range(0), state.range(1));
  const sim::PipelineGraph graph = pipelines.Graph();
  for ([[maybe_unused]] auto _ : state) {
    const double begin = CpuSeconds();
    benchmark::DoNotOptimize(
        sim::LongestPath(graph.tasks, pipelines.network.links()));
    state.SetIterationTime(CpuSeconds() - begin);
  }
  state.SetItemsProcessed(state.iterations() * graph.tasks.num_tasks());
}

// Sets {GPUs, microbatches}. The last two sizes grow the run, not the network.
void Sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"gpus", "microbatches"})
      ->Args({64, 16})
      ->Args({1024, 16})
      ->Args({10240, 16})
      ->Args({1024, 250})
      ->Args({1024, 2500})
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
}

BENCHMARK(BM_Graph)->Apply(Sizes);
BENCHMARK(BM_Engine)->Apply(Sizes);
BENCHMARK(BM_LongestPath)->Apply(Sizes);
// BM_OneRun comes first: RunTaskGraph must not run while a GraphRunner exists.
BENCHMARK(BM_OneRun)->ArgName("slow")->Arg(0)->Arg(1)->UseManualTime()->Unit(
    benchmark::kMicrosecond);
BENCHMARK(BM_GraphRunner)
    ->ArgName("slow")
    ->Arg(0)
    ->Arg(1)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace weir
