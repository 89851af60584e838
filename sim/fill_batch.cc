// SPDX-License-Identifier: Apache-2.0
#include "sim/fill_batch.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/units.h"
#include "results/flops.h"
#include "results/metrics.h"
#include "results/result_enums.h"
#include "sim/count_flops.h"
#include "sim/fill_result.h"
#include "sim/report/breakdown.h"
#include "sim/report/gpu_times.h"
#include "sim/report/gpu_work.h"
#include "sim/report/limit.h"
#include "sim/report/slow_parts.h"
#include "sim/report/uncertainty.h"

namespace weir::sim {
namespace {

std::string DescribeUnsteady(const Window& window, const SimulatedRun& run) {
  std::string text = absl::StrCat("no steady state within ",
                                  run.schedule.num_batches, " batches");
  if (window.num_batches < 2 ||
      window.num_batches == run.schedule.num_batches) {
    return absl::StrCat(text, ", which are too few to detect one");
  }
  return absl::StrCat(
      text, ", the time per batch ",
      window.stationary ? "fluctuates" : "still drifts",
      "; the result is the mean of the last ", window.num_batches,
      ", with a standard deviation of ",
      FormatPercent(window.spread_seconds / window.batch_seconds()));
}

double MeanPeakFlops(const SimulatedRun& run) {
  double flops = 0;
  for (int gpu = 0; gpu < run.graph.num_gpus(); ++gpu) {
    const DeviceCosts& device = run.costs.device_of(gpu);
    flops += device.recipe_peak_flops > 0 ? device.recipe_peak_flops
                                          : device.peak_flops.value();
  }
  return flops / run.graph.num_gpus();
}

// Sets the second definition of a batch's time, see Result.span_seconds.
// Optimizer steps count as idle time.
void FillSpan(const PipelineInputs& inputs, const SimulatedRun& run,
              Result* result) {
  std::vector<ActionSpan> spans;
  double longest = 0;
  for (int gpu = 0; gpu < run.graph.num_gpus(); ++gpu) {
    spans.push_back(SpanOf(run, gpu));
    longest = std::max(longest, spans.back().seconds());
  }
  if (!(longest > 0)) return;
  std::vector<double> idle;
  for (int gpu = 0; gpu < run.graph.num_gpus(); ++gpu) {
    const GpuTimes times = TimesOf(inputs, run.graph, run.recording, gpu,
                                   spans[gpu].begin, spans[gpu].end);
    idle.push_back(longest - spans[gpu].seconds() + times.idle_seconds() +
                   times.optimizer_seconds);
  }
  result->set_span_seconds(longest);
  result->set_span_idle_ratio(results::IdleRatio(idle, longest));
}

// Sets the breakdown of the busiest GPU's seconds, and their uncertainty.
void FillBusiest(const scenarios::ResolvedScenario& resolved,
                 const PipelineInputs& inputs, const SimulatedRun& run,
                 const std::vector<GpuTimes>& times, Result* result) {
  const int gpu = BusiestGpu(times);
  result->set_busiest_gpu(gpu);
  const std::vector<PartSeconds> parts =
      BreakDown(inputs, run.graph, run.recording, gpu, run.window, times[gpu]);
  result->mutable_parts()->Assign(parts.begin(), parts.end());
  if (run.window.rollback_seconds > 0) {
    PartSeconds* rollbacks = result->add_parts();
    rollbacks->set_name("rollbacks");
    rollbacks->set_seconds(run.window.rollback_seconds);
  }
  if (resolved.given_costs || !(run.window.batch_seconds() > 0)) return;
  FillUncertainty(resolved,
                  WorkOf(inputs, run.graph, run.recording, gpu, run.window),
                  result);
}

// `times`: of every GPU in the window.
void FillBreakdown(const Window& window, const std::vector<GpuTimes>& times,
                   StepBreakdown* breakdown) {
  GpuTimes sum;
  for (const GpuTimes& gpu : times) {
    sum.busy_seconds += gpu.busy_seconds;
    sum.tensor_collective_seconds += gpu.tensor_collective_seconds;
    sum.expert_exchange_seconds += gpu.expert_exchange_seconds;
    sum.context_exchange_seconds += gpu.context_exchange_seconds;
    sum.exposed_transfer_seconds += gpu.exposed_transfer_seconds;
    sum.exposed_reduction_seconds += gpu.exposed_reduction_seconds;
    sum.exposed_gather_seconds += gpu.exposed_gather_seconds;
    sum.optimizer_seconds += gpu.optimizer_seconds;
    sum.bubble_seconds += gpu.bubble_seconds;
  }
  const double count = static_cast<double>(times.size()) * window.num_batches;
  // The difference may be below 0 by rounding, if a GPU only runs collectives
  // and steps.
  const double compute =
      std::max(sum.busy_seconds - sum.tensor_collective_seconds -
                   sum.expert_exchange_seconds - sum.context_exchange_seconds -
                   sum.optimizer_seconds,
               0.0);
  breakdown->set_compute_seconds(compute / count);
  breakdown->set_tensor_communication_seconds(sum.tensor_collective_seconds /
                                              count);
  breakdown->set_expert_communication_seconds(sum.expert_exchange_seconds /
                                              count);
  if (sum.context_exchange_seconds > 0) {
    breakdown->set_context_communication_seconds(sum.context_exchange_seconds /
                                                 count);
  }
  breakdown->set_pipeline_transfer_seconds(sum.exposed_transfer_seconds /
                                           count);
  breakdown->set_data_communication_seconds(
      (sum.exposed_reduction_seconds + sum.exposed_gather_seconds) / count);
  breakdown->set_optimizer_seconds(sum.optimizer_seconds / count);
  breakdown->set_bubble_seconds(sum.bubble_seconds / count);
  breakdown->set_rollback_seconds(window.rollback_seconds);
}

}  // namespace

ActionSpan SpanOf(const SimulatedRun& run, int gpu) {
  const auto& actions = run.schedule.rank_actions[run.graph.rank_of(gpu)];
  double first = std::numeric_limits<double>::infinity(), last = 0;
  for (int i = 0; i < static_cast<int>(actions.size()); ++i) {
    first = std::min(
        first, run.recording.start_seconds()[run.graph.ActionTask(gpu, i)]);
    last = std::max(last,
                    run.recording.end_seconds()[run.graph.ActionEnd(gpu, i)]);
  }
  return actions.empty() ? ActionSpan() : ActionSpan{first, last};
}

void FillBatch(const scenarios::ResolvedScenario& resolved,
               const PipelineInputs& inputs, const SimulatedRun& run,
               Result* result) {
  const Window& window = run.window;
  const double seconds = window.end_seconds - window.begin_seconds;
  result->set_makespan_seconds(run.makespan_seconds);
  result->set_batch_seconds(window.batch_seconds());
  result->set_steady_state(window.steady);
  std::vector<GpuTimes> times;
  std::vector<double> idle, exposed;
  for (int gpu = 0; gpu < run.graph.num_gpus(); ++gpu) {
    times.push_back(TimesOf(inputs, run.graph, run.recording, gpu,
                            window.begin_seconds, window.end_seconds));
    idle.push_back(times.back().idle_seconds());
    exposed.push_back(times.back().exposed_seconds());
  }
  result->set_idle_ratio(results::IdleRatio(idle, seconds));
  result->set_exposed_communication_ratio(
      results::ExposedCommunicationRatio(exposed, seconds));
  FillBreakdown(window, times, result->mutable_breakdown());
  result->set_limit(DescribeLimit(inputs, run.graph, window, times));
  const std::string slow = DescribeSlowParts(resolved.cluster, inputs,
                                             run.graph, run.recording, window);
  if (!slow.empty()) absl::StrAppend(result->mutable_limit(), "; ", slow);
  FillBusiest(resolved, inputs, run, times, result);
  if (run.schedule.flush && run.schedule.num_batches == 1)
    FillSpan(inputs, run, result);
  if (!window.steady) result->add_warnings(DescribeUnsteady(window, run));
  if (resolved.given_costs || !(window.batch_seconds() > 0)) return;
  const Batch& batch = resolved.scenario.batch();
  result->set_samples_per_second(results::SamplesPerSecond(
      batch.global_batch_size(), window.batch_seconds()));
  if (batch.sequence_length() > 0) {
    result->set_tokens_per_second(results::TokensPerSecond(
        batch.global_batch_size(), batch.sequence_length(),
        window.batch_seconds()));
  }
  if (run.costs.model_flops.has_value()) {
    result->set_model_flops_utilization(results::ModelFlopsUtilization(
        *run.costs.model_flops * run.schedule.num_microbatches *
            resolved.placement.data,
        window.batch_seconds(), run.graph.num_gpus(), MeanPeakFlops(run)));
    *result->mutable_flops_per_batch() = CountFlops(
        resolved, run.schedule.forward_only, run.schedule.num_stages);
    result->set_flops_formula(
        std::string(results::NameOf(results::FlopsFormula::kModel)));
  }
}

}  // namespace weir::sim
