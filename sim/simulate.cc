// SPDX-License-Identifier: Apache-2.0
#include "sim/simulate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/textproto.h"
#include "base/units.h"
#include "base/version.h"
#include "results/metrics.h"
#include "scenarios/network.h"
#include "schedules/registry.h"
#include "schedules/semantics.h"
#include "schedules/source.h"
#include "schedules/validate.h"
#include "sim/engine.h"
#include "sim/gpu_times.h"
#include "sim/limit.h"
#include "sim/memory.h"
#include "sim/pipeline_graph.h"
#include "sim/schedule_costs.h"
#include "sim/stage_costs.h"
#include "sim/timeline.h"
#include "sim/window.h"

namespace weir {
namespace {

// A run without flush is made longer until its steady state shows, but not
// beyond this many tasks or batches.
constexpr double kMaxSteadyTasks = 4e6;
constexpr int kMaxSteadyBatches = 600;

// A task takes about 80 bytes, and has a number of 31 bits.
constexpr double kMaxTasks = 1e8;

// One simulated run with everything that was derived on the way.
struct Run {
  Schedule schedule;
  Semantics semantics;
  Costs costs;
  PipelineGraph graph;
  Recording recording{0};
  double makespan_seconds = 0;
  Window window;
};

PipelineInputs InputsOf(const ResolvedScenario& scenario,
                        const Network& network, const Run& run) {
  return {run.schedule, run.semantics,      run.costs,
          network,      scenario.placement, scenario.scenario.communication()};
}

std::vector<int> VersionsOfStages(const Semantics& semantics) {
  return {semantics.max_live_versions.begin(),
          semantics.max_live_versions.end()};
}

// Names the actions that wait for each other.
absl::Status Deadlock(const Run& run, bool blocking) {
  std::vector<std::string> stuck;
  for (int gpu = 0; gpu < run.graph.num_gpus() && stuck.size() < 8; ++gpu) {
    const int rank = run.graph.rank_of(gpu);
    const auto& actions = run.schedule.rank_actions[rank];
    for (size_t i = 0; i < actions.size(); ++i) {
      const int32_t end = run.graph.ActionEnd(gpu, static_cast<int>(i));
      if (!std::isnan(run.recording.end_seconds()[end])) continue;
      stuck.push_back(absl::StrCat("rank ", rank, " waits at step ", i, " (",
                                   ToString(actions[i]), ")"));
      break;
    }
    if (run.graph.replica_of(gpu) > 0) break;
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "deadlock: ", run.schedule.name,
      blocking ? " cannot run with blocking transfers: "
               : " cannot run, its optimizer steps wait for other ranks' "
                 "gradients: ",
      absl::StrJoin(stuck, "; "),
      blocking ? "; use overlapped transfers"
               : "; use overlapped gradient reductions"));
}

absl::Status CheckTasks(const ResolvedScenario& scenario, double num_tasks) {
  if (num_tasks <= kMaxTasks) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s: is too large: %.3g tasks (actions, transfers, collectives), about "
      "%s, expected at most %.3g: fewer microbatches, batches or replicas",
      scenario.label, num_tasks, FormatBytes(80 * num_tasks), kMaxTasks));
}

// An automatic schedule is ordered by the costs of the stages it will have.
absl::StatusOr<ScheduleSpec> SpecOf(const ResolvedScenario& scenario,
                                    const Network& network, int num_batches) {
  const Parallelism& parallelism = scenario.scenario.parallelism();
  ScheduleSpec spec;
  spec.num_ranks = static_cast<int>(parallelism.pipeline());
  spec.num_microbatches = scenario.num_microbatches;
  spec.num_chunks = static_cast<int>(parallelism.chunks());
  spec.num_batches = num_batches;
  if (IsScheduleFile(scenario.scenario.schedule())) return spec;
  ASSIGN_OR_RETURN(const ScheduleKind* kind,
                   FindScheduleKind(scenario.scenario.schedule()));
  if (!kind->uses_costs) return spec;
  const int num_stages = spec.num_ranks * spec.num_chunks;
  ASSIGN_OR_RETURN(
      const Costs costs,
      ComputeCosts(scenario, num_stages, std::vector<int>(num_stages, 1)));
  spec.costs = PassCostsOf(scenario, network, costs);
  return spec;
}

absl::StatusOr<Run> RunOnce(const ResolvedScenario& scenario,
                            const Network& network, Schedule schedule,
                            const SimulateOptions& options) {
  Run run;
  run.schedule = std::move(schedule);
  RETURN_IF_ERROR(ValidateSchedule(run.schedule));
  ASSIGN_OR_RETURN(run.semantics, InterpretSchedule(run.schedule));
  ASSIGN_OR_RETURN(run.costs, ComputeCosts(scenario, run.schedule.num_stages,
                                           VersionsOfStages(run.semantics)));
  RETURN_IF_ERROR(ApplySchedule(scenario, network, run.schedule, &run.costs));
  const PipelineInputs inputs = InputsOf(scenario, network, run);
  RETURN_IF_ERROR(CheckTasks(scenario, EstimateTasks(inputs)));
  run.graph = BuildPipelineGraph(inputs);
  ASSIGN_OR_RETURN(run.recording, RunTaskGraph(run.graph.tasks, network.links(),
                                               {options.progress}));
  if (!run.recording.complete()) {
    return Deadlock(run, inputs.communication.transfers() == BLOCKING);
  }
  for (double end : run.recording.end_seconds()) {
    run.makespan_seconds = std::max(run.makespan_seconds, end);
  }
  run.window =
      FindWindow(run.schedule, run.graph, run.recording, run.makespan_seconds);
  return run;
}

absl::StatusOr<Run> RunBatches(const ResolvedScenario& scenario,
                               const Network& network, int num_batches,
                               const SimulateOptions& options) {
  ASSIGN_OR_RETURN(const ScheduleSpec spec,
                   SpecOf(scenario, network, num_batches));
  ASSIGN_OR_RETURN(Schedule schedule,
                   GetSchedule(scenario.scenario.schedule(), spec));
  return RunOnce(scenario, network, std::move(schedule), options);
}

// Without flush: as many batches as it takes to see the steady state.
absl::StatusOr<Run> RunToSteadyState(const ResolvedScenario& scenario,
                                     const Network& network,
                                     const SimulateOptions& options) {
  const std::string& name = scenario.scenario.schedule();
  ASSIGN_OR_RETURN(const bool flush, ScheduleFlushes(name));
  const int given = static_cast<int>(scenario.scenario.num_batches());
  // A file brings its own batches.
  if (flush || given > 0 || IsScheduleFile(name)) {
    return RunBatches(scenario, network, std::max(given, 1), options);
  }
  int num_batches = InitialBatches(scenario.scenario.parallelism().pipeline(),
                                   scenario.num_microbatches);
  while (true) {
    ASSIGN_OR_RETURN(Run run,
                     RunBatches(scenario, network, num_batches, options));
    if (run.window.steady || run.window.stationary ||
        2 * num_batches > kMaxSteadyBatches ||
        2.0 * run.graph.tasks.num_tasks() > kMaxSteadyTasks) {
      return run;
    }
    num_batches *= 2;
  }
}

void FillShape(const ResolvedScenario& resolved, const Run& run,
               Result* result) {
  const Scenario& scenario = resolved.scenario;
  result->set_name(scenario.name());
  result->set_schedule(run.schedule.name);
  result->set_method("full");
  Provenance* provenance = result->mutable_provenance();
  provenance->set_weir_version(std::string(WeirVersion()));
  provenance->set_git_revision(std::string(GitRevision()));
  provenance->set_simgrid_version(SimGridVersion());
  provenance->set_scenario(PrintTextProto(scenario));
  result->set_tensor_parallel(resolved.placement.tensor);
  result->set_pipeline_parallel(resolved.placement.pipeline);
  result->set_data_parallel(resolved.placement.data);
  result->set_chunks(
      std::max(run.schedule.num_stages / run.schedule.num_ranks, 1));
  result->set_microbatch_size(scenario.batch().microbatch_size());
  result->set_global_batch_size(scenario.batch().global_batch_size());
  result->set_sequence_length(scenario.batch().sequence_length());
  result->set_num_microbatches(run.schedule.num_microbatches);
  result->set_num_batches(run.schedule.num_batches);
  result->set_forward_only(run.schedule.forward_only);
}

std::string DescribeUnsteady(const Window& window, const Run& run) {
  std::string text = absl::StrCat(run.schedule.name, ": no period within ",
                                  run.schedule.num_batches, " batches");
  if (window.num_batches < 2 ||
      window.num_batches == run.schedule.num_batches) {
    return absl::StrCat(text, ", too few to show one");
  }
  return absl::StrCat(
      text, ", the time per batch ",
      window.stationary ? "wanders" : "still drifts",
      "; shown is the mean of the last ", window.num_batches,
      ", their standard deviation is ",
      FormatPercent(window.spread_seconds / window.batch_seconds()));
}

double MeanPeakFlops(const Run& run) {
  double flops = 0;
  for (int gpu = 0; gpu < run.graph.num_gpus(); ++gpu) {
    flops += run.costs.device_of(gpu).peak_flops;
  }
  return flops / run.graph.num_gpus();
}

// From the start of a GPU's first action to the end of its last.
double SpanOf(const Run& run, int gpu) {
  const auto& actions = run.schedule.rank_actions[run.graph.rank_of(gpu)];
  double first = std::numeric_limits<double>::infinity(), last = 0;
  for (int i = 0; i < static_cast<int>(actions.size()); ++i) {
    first = std::min(
        first, run.recording.start_seconds()[run.graph.ActionTask(gpu, i)]);
    last = std::max(last,
                    run.recording.end_seconds()[run.graph.ActionEnd(gpu, i)]);
  }
  return actions.empty() ? 0 : last - first;
}

// The second definition of what a batch costs, see Result.span_seconds.
void FillSpan(const Run& run, const std::vector<GpuTimes>& times,
              Result* result) {
  double span = 0;
  std::vector<double> busy;
  for (int gpu = 0; gpu < run.graph.num_gpus(); ++gpu) {
    span = std::max(span, SpanOf(run, gpu));
    busy.push_back(times[gpu].busy_seconds - times[gpu].optimizer_seconds);
  }
  if (!(span > 0)) return;
  result->set_span_seconds(span);
  result->set_span_bubble_ratio(BubbleRatio(busy, span));
}

void FillBatch(const ResolvedScenario& resolved, const PipelineInputs& inputs,
               const Run& run, Result* result) {
  const Window& window = run.window;
  const double seconds = window.end_seconds - window.begin_seconds;
  result->set_makespan_seconds(run.makespan_seconds);
  result->set_batch_seconds(window.batch_seconds());
  result->set_steady_state(window.steady);
  std::vector<GpuTimes> times;
  std::vector<double> busy, exposed;
  for (int gpu = 0; gpu < run.graph.num_gpus(); ++gpu) {
    times.push_back(TimesOf(inputs, run.graph, run.recording, gpu,
                            window.begin_seconds, window.end_seconds));
    busy.push_back(times.back().busy_seconds);
    exposed.push_back(times.back().exposed_seconds());
  }
  result->set_bubble_ratio(BubbleRatio(busy, seconds));
  result->set_exposed_communication_ratio(
      ExposedCommunicationRatio(exposed, seconds));
  result->set_limit(DescribeLimit(inputs, run.graph, window, times));
  if (run.schedule.flush) FillSpan(run, times, result);
  if (!window.steady) result->add_warnings(DescribeUnsteady(window, run));
  if (resolved.textbook || !(window.batch_seconds() > 0)) return;
  const Batch& batch = resolved.scenario.batch();
  result->set_samples_per_second(
      SamplesPerSecond(batch.global_batch_size(), window.batch_seconds()));
  if (batch.sequence_length() > 0) {
    result->set_tokens_per_second(TokensPerSecond(batch.global_batch_size(),
                                                  batch.sequence_length(),
                                                  window.batch_seconds()));
  }
  if (run.costs.model_flops > 0) {
    result->set_model_flops_utilization(ModelFlopsUtilization(
        run.costs.model_flops * run.schedule.num_microbatches *
            resolved.placement.data,
        window.batch_seconds(), run.graph.num_gpus(), MeanPeakFlops(run)));
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
  for (int kind = 0; kind < kNumMemoryKinds; ++kind) {
    if (memory.peak_by_kind[kind] == 0) continue;
    MemoryClass* entry = rank->add_peak_memory_classes();
    entry->set_name(Name(static_cast<MemoryKind>(kind)));
    entry->set_bytes(memory.peak_by_kind[kind]);
  }
}

void FillRank(const ResolvedScenario& resolved, const PipelineInputs& inputs,
              const Run& run, int gpu, bool keep_timeline, Result* result) {
  const int rank = run.graph.rank_of(gpu);
  RankResult* entry = result->add_ranks();
  entry->set_rank(rank);
  entry->set_replica(run.graph.replica_of(gpu));
  entry->set_tensor_rank(gpu % run.graph.tensor);
  entry->set_gpu(resolved.placement.gpus[gpu]);

  const GpuTimes times =
      TimesOf(inputs, run.graph, run.recording, gpu, 0, run.makespan_seconds);
  entry->set_busy_seconds(times.busy_seconds);
  entry->set_idle_seconds(run.makespan_seconds - times.busy_seconds);
  entry->set_exposed_communication_seconds(times.exposed_seconds());
  entry->set_span_seconds(SpanOf(run, gpu));

  const MemoryTimeline memory =
      TraceMemory(inputs, run.graph, run.recording, gpu, keep_timeline);
  FillMemory(memory, entry);
  if (keep_timeline) FillMemory(gpu, memory, result->mutable_timeline());
  entry->set_weight_versions(
      LargestOf(run.graph.rank_stages[rank], run.semantics.max_live_versions));
  entry->set_staleness_updates(
      LargestOf(run.graph.rank_stages[rank], run.semantics.max_staleness));
}

// Every GPU has a capacity of its own; shown is the smallest.
void FillCapacity(const ResolvedScenario& resolved, const Run& run,
                  Result* result) {
  result->set_fits_memory(true);
  if (resolved.textbook) return;
  double smallest = std::numeric_limits<double>::infinity();
  for (int gpu = 0; gpu < run.graph.num_gpus(); ++gpu) {
    const double capacity = run.costs.device_of(gpu).memory_bytes;
    smallest = std::min(smallest, capacity);
    if (result->ranks(gpu).peak_memory_bytes() > capacity) {
      result->set_fits_memory(false);
    }
  }
  result->set_memory_capacity_bytes(smallest);
}

void FillRanks(const ResolvedScenario& resolved, const PipelineInputs& inputs,
               const Run& run, bool keep_timeline, Result* result) {
  std::vector<double> peaks;
  for (int rank = 0; rank < run.schedule.num_ranks; ++rank) {
    peaks.push_back(PeakActivationMicrobatches(inputs, run.graph, run.recording,
                                               rank * run.graph.tensor));
  }
  for (int gpu = 0; gpu < run.graph.num_gpus(); ++gpu) {
    FillRank(resolved, inputs, run, gpu, keep_timeline, result);
    RankResult* entry = result->mutable_ranks(gpu);
    entry->set_peak_activation_microbatches(peaks[entry->rank()]);
    result->set_peak_memory_bytes(
        std::max(result->peak_memory_bytes(), entry->peak_memory_bytes()));
    result->set_weight_versions(
        std::max(result->weight_versions(), entry->weight_versions()));
    result->set_staleness_updates(
        std::max(result->staleness_updates(), entry->staleness_updates()));
  }
  FillCapacity(resolved, run, result);
}

double TimelineBegin(const Run& run, int num_batches) {
  if (num_batches == 0 || run.schedule.num_batches <= 2 * num_batches) return 0;
  return std::max(
      run.window.end_seconds - num_batches * run.window.batch_seconds(), 0.0);
}

Network NetworkOf(const ResolvedScenario& scenario) {
  return scenario.textbook
             ? Network::Textbook(scenario.placement.num_gpus(),
                                 scenario.scenario.textbook().hop_seconds())
             : Network(scenario.cluster);
}

Result MakeResult(const ResolvedScenario& scenario, const Network& network,
                  const Run& run, const SimulateOptions& options) {
  const PipelineInputs inputs = InputsOf(scenario, network, run);
  Result result;
  FillShape(scenario, run, &result);
  result.set_semantics(Verdict(run.schedule, run.semantics));
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

}  // namespace

absl::StatusOr<Result> Simulate(const ResolvedScenario& scenario,
                                const SimulateOptions& options) {
  const Network network = NetworkOf(scenario);
  ASSIGN_OR_RETURN(const Run run, RunToSteadyState(scenario, network, options));
  return MakeResult(scenario, network, run, options);
}

absl::StatusOr<Result> SimulateSchedule(const ResolvedScenario& scenario,
                                        const Schedule& schedule,
                                        const SimulateOptions& options) {
  const Network network = NetworkOf(scenario);
  ASSIGN_OR_RETURN(const Run run,
                   RunOnce(scenario, network, schedule, options));
  return MakeResult(scenario, network, run, options);
}

}  // namespace weir
