// SPDX-License-Identifier: Apache-2.0
#include "sim/fill_ranks.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/units.h"
#include "results/result_enums.h"
#include "sim/fill_batch.h"
#include "sim/fill_result.h"
#include "sim/report/gpu_times.h"
#include "sim/report/host_memory.h"
#include "sim/report/memory.h"
#include "sim/report/memory_interval.h"
#include "sim/report/peak_activations.h"
#include "sim/report/timeline.h"
#include "sim/simulate.h"

namespace weir::sim {
namespace {

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

}  // namespace

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

}  // namespace weir::sim
