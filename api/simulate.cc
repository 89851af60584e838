// SPDX-License-Identifier: Apache-2.0
#include "weir/simulate.h"

#include <mutex>

#include "api/keep_assets.h"
#include "api/status.h"
#include "base/textproto.h"
#include "base/version.h"
#include "results/result.pb.h"
#include "scenarios/scenario.h"
#include "sim/engine/graph_runner.h"
#include "sim/fast/fast_simulator.h"
#include "sim/simulate.h"

namespace weir::api {
namespace {

// SimGrid's engine, of which a process has one. Full simulations use it in this
// process too, since a process in which it ran must not fork.
struct Engine {
  std::mutex mutex;
  sim::GraphRunner runner;
  sim::FastSimulator simulator{&runner};
};

Engine& TheEngine() {
  static auto& engine = *new Engine();
  return engine;
}

scenarios::ResolvedScenario Resolve(const Scenario& scenario) {
  KeepAssets();
  weir::Scenario message;
  ThrowUnlessOk(ParseTextProto(scenario.label(), scenario.text(), &message));
  return ValueOrThrow(scenarios::ResolveScenario(scenario.label(), message));
}

Breakdown BreakdownOf(const StepBreakdown& parts) {
  return {
      .compute_seconds = parts.compute_seconds(),
      .tensor_communication_seconds = parts.tensor_communication_seconds(),
      .expert_communication_seconds = parts.expert_communication_seconds(),
      .context_communication_seconds = parts.context_communication_seconds(),
      .pipeline_transfer_seconds = parts.pipeline_transfer_seconds(),
      .data_communication_seconds = parts.data_communication_seconds(),
      .optimizer_seconds = parts.optimizer_seconds(),
      .bubble_seconds = parts.bubble_seconds(),
      .rollback_seconds = parts.rollback_seconds()};
}

Gpu GpuOf(const RankResult& rank) {
  return {.number = static_cast<int>(rank.gpu()),
          .pipeline_rank = static_cast<int>(rank.rank()),
          .replica = static_cast<int>(rank.replica()),
          .tensor_rank = static_cast<int>(rank.tensor_rank()),
          .busy_seconds = rank.busy_seconds(),
          .idle_seconds = rank.idle_seconds(),
          .peak_memory_bytes = rank.peak_memory_bytes(),
          .weight_versions = static_cast<int>(rank.weight_versions()),
          .staleness_updates = static_cast<int>(rank.staleness_updates())};
}

// Appends the passes of the timeline; optimizer steps and offloads are no
// passes.
void AddPasses(const Timeline::Actions& actions,
               std::vector<PassTime>* passes) {
  for (int i = 0; i < actions.gpu_size(); ++i) {
    const int op = actions.op(i);
    if (op > Timeline::Actions::BACKWARD_WEIGHT) continue;
    const int count = actions.num_microbatches_size() > 0
                          ? static_cast<int>(actions.num_microbatches(i))
                          : 1;
    for (int k = 0; k < count; ++k) {
      passes->push_back({.gpu = static_cast<int>(actions.gpu(i)),
                         .pass = {static_cast<Op>(op), actions.stage(i),
                                  actions.microbatch(i) + k},
                         .start_seconds = actions.start_seconds(i),
                         .end_seconds = actions.end_seconds(i)});
    }
  }
}

static_assert(static_cast<int>(Op::kForward) == Timeline::Actions::FORWARD);
static_assert(static_cast<int>(Op::kBackward) == Timeline::Actions::BACKWARD);
static_assert(static_cast<int>(Op::kBackwardInput) ==
              Timeline::Actions::BACKWARD_INPUT);
static_assert(static_cast<int>(Op::kBackwardWeight) ==
              Timeline::Actions::BACKWARD_WEIGHT);

Result ResultOf(const weir::Result& from) {
  Result result{.schedule = from.schedule(),
                .num_microbatches = static_cast<int>(from.num_microbatches()),
                .step_seconds = from.batch_seconds(),
                .step_seconds_low = from.batch_seconds_low(),
                .step_seconds_high = from.batch_seconds_high(),
                .makespan_seconds = from.makespan_seconds(),
                .samples_per_second = from.samples_per_second(),
                .tokens_per_second = from.tokens_per_second(),
                .flops_utilization = from.model_flops_utilization(),
                .idle_ratio = from.idle_ratio(),
                .peak_memory_bytes = from.peak_memory_bytes(),
                .memory_capacity_bytes = from.memory_capacity_bytes(),
                .fits_memory = from.fits_memory(),
                .breakdown = BreakdownOf(from.breakdown()),
                .gpus = {},
                .passes = {},
                .limit = from.limit(),
                .warnings = {from.warnings().begin(), from.warnings().end()}};
  for (const RankResult& rank : from.ranks()) {
    result.gpus.push_back(GpuOf(rank));
  }
  AddPasses(from.timeline().actions(), &result.passes);
  return result;
}

}  // namespace

Result Simulate(const Scenario& scenario, const SimulateOptions& options) {
  const scenarios::ResolvedScenario resolved = Resolve(scenario);
  Engine& engine = TheEngine();
  const std::lock_guard<std::mutex> lock(engine.mutex);
  sim::SimulateOptions full;
  full.keep_timeline = options.timeline;
  full.runner = &engine.runner;
  return ResultOf(ValueOrThrow(sim::Simulate(resolved, full)));
}

FastEstimate Estimate(const Scenario& scenario) {
  const scenarios::ResolvedScenario resolved = Resolve(scenario);
  Engine& engine = TheEngine();
  const std::lock_guard<std::mutex> lock(engine.mutex);
  sim::FastEstimate estimate =
      ValueOrThrow(engine.simulator.Estimate(resolved));
  return {.step_seconds = estimate.batch_seconds,
          .makespan_seconds = estimate.makespan_seconds,
          .rank_peak_memory_bytes = std::move(estimate.peak_bytes),
          .fits_memory = estimate.fits_memory};
}

std::string Version() { return std::string(WeirVersion()); }

}  // namespace weir::api
