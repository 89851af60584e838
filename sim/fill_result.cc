// SPDX-License-Identifier: Apache-2.0
#include "sim/fill_result.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/textproto.h"
#include "base/units.h"
#include "base/version.h"
#include "models/expert_load.h"
#include "results/flops.h"
#include "results/metrics.h"
#include "results/result_enums.h"
#include "schedules/semantics.h"
#include "sim/count_flops.h"
#include "sim/report/breakdown.h"
#include "sim/report/gpu_times.h"
#include "sim/report/gpu_work.h"
#include "sim/report/host_memory.h"
#include "sim/report/limit.h"
#include "sim/report/memory.h"
#include "sim/report/memory_interval.h"
#include "sim/report/peak_activations.h"
#include "sim/report/slow_parts.h"
#include "sim/report/timeline.h"
#include "sim/report/uncertainty.h"
#include "sim/simulate.h"

namespace weir::sim {
namespace {

// Sets only what differs from usual.
void FillExperts(const scenarios::ResolvedScenario& resolved, Result* result) {
  const Parallelism& parallelism = resolved.scenario.parallelism();
  const uint32_t each = parallelism.expert_tensor();
  if (each > 0 && each != parallelism.tensor()) {
    result->set_expert_tensor_parallel(each);
  }
  if (parallelism.data_replicate() > 1) {
    result->set_data_replicate(parallelism.data_replicate());
  }
  const double load =
      models::ExpertLoad(resolved.model.transformer(),
                         resolved.scenario.training().expert_imbalance(),
                         static_cast<int>(parallelism.expert()));
  if (load > 1) result->set_expert_load(load);
}

void FillShape(const scenarios::ResolvedScenario& resolved,
               const SimulatedRun& run, Result* result) {
  const Scenario& scenario = resolved.scenario;
  result->set_name(scenario.name());
  result->set_schedule(run.schedule.name);
  result->set_method("full");
  ResultProvenance* provenance = result->mutable_provenance();
  provenance->set_weir_version(std::string(WeirVersion()));
  provenance->set_git_revision(std::string(GitRevision()));
  provenance->set_simgrid_version(SimGridVersion());
  provenance->set_scenario(PrintTextProto(scenario));
  const DeviceProfile& device = resolved.device;
  provenance->set_gpu_name(device.provenance().gpu_name());
  provenance->set_gpu_hash(device.provenance().gpu_hash());
  provenance->set_of_replays(device.purpose() == DeviceProfile::REPLAYS);
  result->set_tensor_parallel(resolved.placement.tensor);
  result->set_pipeline_parallel(resolved.placement.pipeline);
  const int context =
      std::max(static_cast<int>(scenario.parallelism().context()), 1);
  result->set_data_parallel(resolved.placement.data / context);
  if (context > 1) result->set_context_parallel(context);
  FillExperts(resolved, result);
  result->set_chunks(
      std::max(run.schedule.num_stages / run.schedule.num_ranks, 1));
  result->set_microbatch_size(scenario.batch().microbatch_size());
  result->set_global_batch_size(scenario.batch().global_batch_size());
  result->set_sequence_length(scenario.batch().sequence_length());
  result->set_num_microbatches(run.schedule.num_microbatches);
  result->set_num_batches(run.schedule.num_batches);
  result->set_forward_only(run.schedule.forward_only);
}

std::string DescribeUnsteady(const Window& window, const SimulatedRun& run) {
  std::string text =
      absl::StrCat(run.schedule.name, ": no steady state within ",
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

struct Span {
  double begin = 0, end = 0;
  double seconds() const { return end - begin; }
};

// Returns the time from the start of a GPU's first action to the end of its
// last.
Span SpanOf(const SimulatedRun& run, int gpu) {
  const auto& actions = run.schedule.rank_actions[run.graph.rank_of(gpu)];
  double first = std::numeric_limits<double>::infinity(), last = 0;
  for (int i = 0; i < static_cast<int>(actions.size()); ++i) {
    first = std::min(
        first, run.recording.start_seconds()[run.graph.ActionTask(gpu, i)]);
    last = std::max(last,
                    run.recording.end_seconds()[run.graph.ActionEnd(gpu, i)]);
  }
  return actions.empty() ? Span() : Span{first, last};
}

// Sets the second definition of a batch's time, see Result.span_seconds. Steps
// are not part of it: a GPU counts as idle during a step.
void FillSpan(const PipelineInputs& inputs, const SimulatedRun& run,
              Result* result) {
  std::vector<Span> spans;
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
  // Collectives and steps may be all that a GPU does, except for rounding.
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

int LargestOf(const std::vector<int>& stages,
              const std::vector<int>& by_stage) {
  int largest = 0;
  for (int s : stages) largest = std::max(largest, by_stage[s]);
  return largest;
}

void FillMemory(const MemoryTimeline& memory, RankResult* rank) {
  rank->set_peak_memory_bytes(memory.peak_bytes);
  rank->set_peak_memory_at_seconds(memory.peak_at_seconds);
  if (memory.communicator_bytes > 0) {
    rank->set_communicator_bytes(memory.communicator_bytes);
  }
  if (memory.cached_bytes > 0) rank->set_cached_bytes(memory.cached_bytes);
  for (int kind = 0; kind < MemoryClass::Kind_ARRAYSIZE; ++kind) {
    if (memory.peak_by_kind[kind] == 0) continue;
    MemoryClass* entry = rank->add_peak_memory_classes();
    entry->set_name(results::NameOf(static_cast<MemoryClass::Kind>(kind)));
    entry->set_bytes(memory.peak_by_kind[kind]);
  }
}

void FillRank(const scenarios::ResolvedScenario& resolved,
              const PipelineInputs& inputs, const SimulatedRun& run, int gpu,
              bool keep_timeline, Result* result) {
  const int rank = run.graph.rank_of(gpu);
  RankResult* entry = result->add_ranks();
  entry->set_rank(rank);
  entry->set_replica(run.graph.replica_of(gpu));
  entry->set_tensor_rank(gpu % run.graph.tensor);
  entry->set_gpu(resolved.placement.gpus[gpu]);

  const GpuTimes times =
      TimesOf(inputs, run.graph, run.recording, gpu, 0, run.makespan_seconds);
  entry->set_busy_seconds(times.busy_seconds);
  entry->set_idle_seconds(times.idle_seconds());
  entry->set_exposed_communication_seconds(times.exposed_seconds());
  entry->set_span_seconds(SpanOf(run, gpu).seconds());

  const MemoryTimeline memory =
      TraceMemory(inputs, run.graph, run.recording, gpu, keep_timeline);
  FillMemory(memory, entry);
  if (keep_timeline) FillMemory(gpu, memory, result->mutable_timeline());
  if (keep_timeline && entry->replica() == 0 && entry->tensor_rank() == 0) {
    FillClassMemory(gpu, memory, result->mutable_timeline());
  }
  entry->set_weight_versions(
      LargestOf(run.graph.rank_stages[rank], run.semantics.max_live_versions));
  entry->set_staleness_updates(
      LargestOf(run.graph.rank_stages[rank], run.semantics.max_staleness));
}

// Returns the memory of a GPU with what its allocator caches, which is less if
// the GPU is full.
double UsedBytes(const RankResult& rank, std::optional<double> capacity) {
  const double peak = rank.peak_memory_bytes();
  const double used = peak + rank.cached_bytes();
  return capacity.has_value() ? std::max(peak, std::min(used, *capacity))
                              : used;
}

// GPUs may have different capacities; the smallest one is reported.
void FillCapacity(const scenarios::ResolvedScenario& resolved,
                  const SimulatedRun& run, Result* result) {
  result->set_fits_memory(true);
  if (resolved.given_costs) return;
  double smallest = std::numeric_limits<double>::infinity();
  double most_used = 0;  // fraction of the fullest GPU's memory
  for (int gpu = 0; gpu < run.graph.num_gpus(); ++gpu) {
    const double capacity = run.costs.device_of(gpu).memory_bytes.value();
    smallest = std::min(smallest, capacity);
    most_used =
        std::max(most_used, result->ranks(gpu).peak_memory_bytes() / capacity);
  }
  result->set_fits_memory(most_used <= 1);
  result->set_memory_capacity_bytes(smallest);
  FillMemoryInterval(resolved, result);
  if (most_used <= 1 && result->peak_memory_bytes_high() > smallest) {
    result->add_warnings(MarginWarning(most_used));
  }
}

void FillRanks(const scenarios::ResolvedScenario& resolved,
               const PipelineInputs& inputs, const SimulatedRun& run,
               bool keep_timeline, Result* result) {
  std::vector<double> peaks;
  double host_bytes = 0;
  for (int rank = 0; rank < run.schedule.num_ranks; ++rank) {
    peaks.push_back(PeakActivationMicrobatches(inputs, run.graph, run.recording,
                                               rank * run.graph.tensor));
  }
  for (int gpu = 0; gpu < run.graph.num_gpus(); ++gpu) {
    FillRank(resolved, inputs, run, gpu, keep_timeline, result);
    RankResult* entry = result->mutable_ranks(gpu);
    entry->set_peak_activation_microbatches(peaks[entry->rank()]);
    host_bytes = std::max(
        host_bytes, HostBytes(inputs, run.graph, gpu, peaks[entry->rank()]));
    result->set_peak_memory_bytes(
        std::max(result->peak_memory_bytes(), entry->peak_memory_bytes()));
    result->set_used_memory_bytes(
        std::max(result->used_memory_bytes(),
                 UsedBytes(*entry, run.costs.device_of(gpu).memory_bytes)));
    result->set_weight_versions(
        std::max(result->weight_versions(), entry->weight_versions()));
    result->set_staleness_updates(
        std::max(result->staleness_updates(), entry->staleness_updates()));
  }
  FillCapacity(resolved, run, result);
  if (host_bytes > 0) {
    result->add_warnings(absl::StrCat(
        "host memory: ", FormatBytes(host_bytes),
        " per GPU of activations and optimizer states, which is not checked"));
  }
}

double TimelineBegin(const SimulatedRun& run, int num_batches) {
  if (num_batches == 0 || run.schedule.num_batches <= 2 * num_batches) return 0;
  return std::max(
      run.window.end_seconds - num_batches * run.window.batch_seconds(), 0.0);
}

}  // namespace

PipelineInputs InputsOf(const scenarios::ResolvedScenario& scenario,
                        const scenarios::Network& network,
                        const SimulatedRun& run) {
  return {run.schedule, run.semantics,      run.costs,
          network,      scenario.placement, scenario.scenario.communication()};
}

DefaultsOfResult ReportDefaults(const scenarios::UsedDefaults& used) {
  DefaultsOfResult defaults;
  defaults.set_set(used.set);
  defaults.mutable_used()->Assign(used.used.begin(), used.used.end());
  defaults.mutable_not_used()->Assign(used.not_used.begin(),
                                      used.not_used.end());
  return defaults;
}

Result MakeResult(const scenarios::ResolvedScenario& scenario,
                  const scenarios::Network& network, const SimulatedRun& run,
                  const SimulateOptions& options) {
  const PipelineInputs inputs = InputsOf(scenario, network, run);
  Result result;
  FillShape(scenario, run, &result);
  if (DefaultsOfResult defaults = ReportDefaults(scenario.used_defaults);
      !defaults.used().empty() || !defaults.not_used().empty()) {
    *result.mutable_defaults() = std::move(defaults);
  }
  for (const std::string& warning : scenario.warnings) {
    result.add_warnings(warning);
  }
  result.set_semantics(schedules::Verdict(run.schedule, run.semantics));
  FillBatch(scenario, inputs, run, &result);
  if (options.keep_timeline) {
    result.mutable_timeline()->set_from_seconds(
        TimelineBegin(run, options.timeline_batches));
  }
  FillRanks(scenario, inputs, run, options.keep_timeline, &result);
  if (options.keep_timeline) {
    FillTimeline(inputs, run.graph, run.recording, result.mutable_timeline());
  }
  return result;
}

}  // namespace weir::sim
