// SPDX-License-Identifier: Apache-2.0
#include "sim/fast/fast_run.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "sim/prepare.h"
#include "sim/report/gpu_times.h"
#include "sim/report/memory.h"

namespace weir::sim {
namespace {

// Upper bound on the tasks of a full graph per task of the reduced graph: the
// hops of all rings that one hop represents, with a margin.
constexpr double kMostTasksPerReduced = 16;

// Returns the time of the predictions of weights that a rank computes once per
// batch, which are not in the periods left out.
double PredictionsPerBatch(const FastRun& run, int rank) {
  const schedules::WeightPolicy& weights = run.program->schedule().weights;
  if (weights.prediction !=
      schedules::WeightPolicy::Prediction::kFirstForwardOfUpdate) {
    return 0;
  }
  double seconds = 0;
  for (const int stage : run.graph.rank_stages[rank]) {
    if (weights.forward_distance[stage] == 0) continue;
    seconds += run.costs.stages[stage].seconds.prediction;
  }
  return seconds;
}

}  // namespace

double FastRun::num_tasks() const {
  const double count = graph.tasks.num_tasks();
  if (!reduced()) return count;
  return count * kMostTasksPerReduced *
         answer->symmetry->full_placement().num_gpus() /
         answer->symmetry->representatives().num_gpus();
}

bool FastRun::Repeats(int num_microbatches) const {
  return num_microbatches % (steadiness->cuts.front().period_multiple *
                             program->shortened->period_microbatches) ==
         0;
}

void FastRun::AddLeftOut(int num_microbatches) {
  Program whole = *program;
  const int periods = num_microbatches / whole.shortened->period_microbatches;
  whole.shortened->num_periods_left_out += periods;
  const double seconds = periods * steadiness->cuts.front().period_seconds;
  steadiness->seconds_left_out += seconds;
  window.end_seconds += seconds;
  program = std::make_shared<const Program>(std::move(whole));
}

FastEstimate EstimateOf(const scenarios::ResolvedScenario& scenario,
                        const FastRun& run) {
  FastEstimate ranked;
  const PipelineInputs inputs = run.InputsOf(scenario);
  const bool extrapolated = run.steadiness.has_value();
  ranked.batch_seconds = run.window.batch_seconds();
  ranked.makespan_seconds =
      MakespanOf(run.recording) +
      (extrapolated ? run.steadiness->seconds_left_out : 0) +
      run.num_batches_left_out * run.window.batch_seconds();
  ranked.peak_bytes.resize(inputs.placement().pipeline);
  for (int gpu = 0; gpu < run.graph.num_gpus(); ++gpu) {
    const MemoryTimeline memory =
        TraceMemory(inputs, run.graph, run.recording, gpu,
                    extrapolated && run.program->schedule().flush);
    // short_batches.h, steady.h
    const double peak =
        extrapolated && run.program->schedule().flush
            ? PeakBytesOfAll(memory, *run.program->shortened, *run.steadiness)
            : memory.peak_bytes;
    double& most = ranked.peak_bytes[run.graph.rank_of(gpu)];
    most = std::max(most, peak);
    const std::optional<double>& capacity =
        run.costs.device_of(gpu).memory_bytes;
    if (capacity.has_value() && peak > *capacity) {
      ranked.fits_memory = false;
    }
  }
  ranked.reduced = run.reduced();
  ranked.extrapolated = extrapolated;
  ranked.shared_links = run.shared_links;
  ranked.num_simulated_gpus = run.graph.num_gpus();
  ranked.num_simulated_microbatches =
      run.program->schedule().total_microbatches();
  ranked.num_microbatches =
      extrapolated
          ? scenario.num_microbatches *
                (run.program->schedule().num_batches + run.num_batches_left_out)
          : ranked.num_simulated_microbatches;
  if (!ranked.reduced) ranked.not_reduced = run.answer->why_not;
  ranked.not_extrapolated = run.not_extrapolated;
  return ranked;
}

void FillParts(const scenarios::ResolvedScenario& scenario, const FastRun& run,
               FastEstimate* estimate) {
  const PipelineInputs inputs = run.InputsOf(scenario);
  const int num_ranks = inputs.placement().pipeline;
  std::vector<double> compute(num_ranks), communication(num_ranks);
  std::vector<int> num_gpus(num_ranks);
  Window window = run.window;
  double repeated = 1, steps_repeated = 1;
  if (run.steadiness.has_value()) {
    // Passes of the periods that were left out.
    window = run.simulated_window;
    repeated = static_cast<double>(scenario.num_microbatches) /
               run.program->schedule().num_microbatches;
    // Optimizer steps after every batch are not in the periods left out.
    const schedules::WeightPolicy& weights = run.program->schedule().weights;
    if (weights.microbatches_per_update <
        run.program->schedule().num_microbatches) {
      steps_repeated = repeated;
    }
  }
  // Each GPU of the graph counts as often as the GPUs that it represents.
  std::vector<int> represented(run.graph.num_gpus(), 1);
  if (run.reduced()) {
    const Symmetry& symmetry = *run.answer->symmetry;
    represented.assign(run.graph.num_gpus(), 0);
    for (int i = 0; i < symmetry.full_placement().num_gpus(); ++i) {
      ++represented[symmetry.RepresentativeOf(i)];
    }
  }
  for (int gpu = 0; gpu < run.graph.num_gpus(); ++gpu) {
    const GpuTimes times = TimesOf(inputs, run.graph, run.recording, gpu,
                                   window.begin_seconds, window.end_seconds);
    const double collectives = times.tensor_collective_seconds +
                               times.expert_exchange_seconds +
                               times.context_exchange_seconds;
    const int rank = run.graph.rank_of(gpu);
    const double once = window.num_batches * PredictionsPerBatch(run, rank);
    compute[rank] +=
        represented[gpu] * (repeated * (times.busy_seconds - collectives -
                                        times.optimizer_seconds - once) +
                            steps_repeated * times.optimizer_seconds + once);
    communication[rank] += represented[gpu] * repeated * collectives;
    num_gpus[rank] += represented[gpu];
  }
  for (int rank = 0; rank < num_ranks; ++rank) {
    const double parts =
        1.0 * std::max(num_gpus[rank], 1) * num_ranks * window.num_batches;
    estimate->compute_seconds += std::max(compute[rank], 0.0) / parts;
    estimate->communication_seconds += communication[rank] / parts;
  }
}

}  // namespace weir::sim
