// SPDX-License-Identifier: Apache-2.0
// Prices the stages of a model of 128 layers with a loaded profile: its layers,
// their partition into stages, every kernel. The target is one millisecond.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "calibrate/profile/device_profile.h"
#include "models/model.h"
#include "sim/costs/stage_costs.h"

namespace weir {
namespace {

template <typename Value>
Value Checked(absl::StatusOr<Value> value) {
  if (!value.ok()) {
    std::fprintf(stderr, "%s\n", value.status().ToString().c_str());
    std::abort();
  }
  return *std::move(value);
}

constexpr char kDense[] =
    "transformer { num_layers: 128 hidden_size: 25600 num_heads: 160 "
    "vocabulary_size: 51200 num_positions: 2048 causal: true "
    "tied_embeddings: true attention_bias: true feed_forward_bias: true }";
constexpr char kExperts[] =
    "transformer { num_layers: 128 hidden_size: 4096 num_heads: 32 "
    "num_kv_heads: 8 vocabulary_size: 51200 causal: true num_experts: 64 "
    "experts_per_token: 4 num_dense_blocks: 2 gated_feed_forward: true }";

void Price(benchmark::State& state, const char* model, int num_stages) {
  scenarios::ResolvedScenario resolved;
  resolved.label = "benchmark";
  resolved.model = Checked(models::ParseModel("benchmark", model));
  resolved.device = Checked(calibrate::LoadDeviceProfile("h100-sxm"));
  Scenario& scenario = resolved.scenario;
  scenario.mutable_parallelism()->set_tensor(8);
  scenario.mutable_parallelism()->set_sequence_parallel(true);
  scenario.mutable_batch()->set_microbatch_size(1);
  scenario.mutable_batch()->set_sequence_length(2048);
  scenario.mutable_training()->set_precision(MIXED_BF16);
  scenario.mutable_training()->set_recompute(RECOMPUTE_SELECTIVE);
  const std::vector<int> versions(num_stages, 1);
  for ([[maybe_unused]] auto _ : state) {
    const auto costs = sim::ComputeCosts(resolved, num_stages, versions);
    if (!costs.ok()) std::abort();
    benchmark::DoNotOptimize(costs->stages.data());
  }
}
BENCHMARK_CAPTURE(Price, dense_16_stages, kDense, 16)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Price, dense_128_stages, kDense, 128)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Price, experts_16_stages, kExperts, 16)
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace weir
