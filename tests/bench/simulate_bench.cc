// SPDX-License-Identifier: Apache-2.0
// Whole simulations, from the resolved scenario to the result: a model of 256
// blocks over 64 H100 in 8 nodes with 1,024 microbatches, network and memory;
// and Megatron's model of 1,008 billion parameters on 3,072 A100.
#include <benchmark/benchmark.h>
#include <google/protobuf/text_format.h>

#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "calibrate/profile/device_profile.h"
#include "models/model.h"
#include "scenarios/cluster/cluster.h"
#include "scenarios/scenario.h"
#include "sim/simulate.h"
#include "tests/bench/cpu_time.h"

namespace weir {
namespace {

constexpr char kDeepModel[] =
    "name: 'deep' transformer { num_layers: 256 hidden_size: 4096 "
    "num_heads: 32 vocabulary_size: 50304 num_positions: 2048 causal: true "
    "tied_embeddings: true attention_bias: true attention_output_bias: true "
    "feed_forward_bias: true }";
constexpr int kRanks = 64, kMicrobatches = 1024;

template <typename Value>
Value Checked(absl::StatusOr<Value> value) {
  if (!value.ok()) {
    std::fprintf(stderr, "%s\n", value.status().ToString().c_str());
    std::abort();
  }
  return *std::move(value);
}

scenarios::ResolvedScenario Deep(const std::string& schedule, int num_chunks) {
  scenarios::ResolvedScenario resolved;
  resolved.label = "benchmark";
  resolved.model = Checked(models::ParseModel("benchmark", kDeepModel));
  resolved.cluster = Checked(scenarios::LoadCluster("dgx-h100", kRanks / 8));
  resolved.device = Checked(calibrate::LoadDeviceProfile("h100-sxm"));
  resolved.placement.pipeline = kRanks;
  for (int gpu = 0; gpu < kRanks; ++gpu) {
    resolved.placement.gpus.push_back(gpu);
  }
  resolved.num_microbatches = kMicrobatches;
  Scenario& scenario = resolved.scenario;
  scenario.set_schedule(schedule);
  Parallelism* parallelism = scenario.mutable_parallelism();
  parallelism->set_tensor(1);
  parallelism->set_data(1);
  parallelism->set_pipeline(kRanks);
  parallelism->set_chunks(num_chunks);
  scenario.mutable_batch()->set_microbatch_size(1);
  scenario.mutable_batch()->set_global_batch_size(kMicrobatches);
  scenario.mutable_batch()->set_sequence_length(2048);
  scenario.mutable_training()->set_precision(MIXED_BF16);
  scenario.mutable_training()->set_recompute(RECOMPUTE_FULL);
  return resolved;
}

void BM_Simulate(benchmark::State& state, const std::string& schedule) {
  const int num_chunks = static_cast<int>(state.range(0));
  const scenarios::ResolvedScenario scenario = Deep(schedule, num_chunks);
  for ([[maybe_unused]] auto _ : state) {
    const double begin = CpuSeconds();
    const Result result = Checked(sim::Simulate(scenario));
    state.SetIterationTime(CpuSeconds() - begin);
    benchmark::DoNotOptimize(result.makespan_seconds());
  }
  state.SetItemsProcessed(state.iterations() * 2 * kRanks * num_chunks *
                          kMicrobatches);
  state.counters["peak_MiB"] = PeakMebibytes();
}

// Narayanan et al. 2021, the last row of their table 1, with one chunk per
// rank.
constexpr char kMegatron[] =
    "name: 'megatron-1008b' cluster: 'selene' num_nodes: 384 "
    "transformer { num_layers: 128 hidden_size: 25600 num_heads: 160 "
    "vocabulary_size: 51200 num_positions: 2048 causal: true "
    "attention_bias: true attention_output_bias: true "
    "feed_forward_bias: true tied_embeddings: true } "
    "parallelism { tensor: 8 data: 6 pipeline: 64 order: 'tp-dp-pp' } "
    "batch { microbatch_size: 1 global_batch_size: 3072 "
    "sequence_length: 2048 } schedule: '1f1b' "
    "training { precision: MIXED_FP16 optimizer: ADAM "
    "recompute: RECOMPUTE_FULL dropout: true } "
    "communication { transfers: OVERLAPPED "
    "gradient_reduction: REDUCTION_BLOCKING }";

void BM_Megatron1008B(benchmark::State& state) {
  Scenario scenario;
  if (!google::protobuf::TextFormat::ParseFromString(kMegatron, &scenario)) {
    std::abort();
  }
  const scenarios::ResolvedScenario resolved =
      Checked(scenarios::ResolveScenario("benchmark", scenario));
  double user_seconds = 0;
  for ([[maybe_unused]] auto _ : state) {
    const double begin = CpuSeconds(), user_begin = UserSeconds();
    const Result result = Checked(sim::Simulate(resolved));
    state.SetIterationTime(CpuSeconds() - begin);
    user_seconds += UserSeconds() - user_begin;
    benchmark::DoNotOptimize(result.makespan_seconds());
  }
  state.counters["user_seconds"] =
      user_seconds / static_cast<double>(state.iterations());
  state.counters["peak_MiB"] = PeakMebibytes();
}

BENCHMARK(BM_Megatron1008B)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Simulate, pipedream_flush, std::string("1f1b"))
    ->ArgName("chunks")
    ->Arg(1)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Simulate, interleaved, std::string("interleaved-1f1b"))
    ->ArgName("chunks")
    ->Arg(4)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace weir
