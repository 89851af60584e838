// SPDX-License-Identifier: Apache-2.0
// The ranges of one process of a trace: which are recorded twice, and to which
// steps they belong.
#ifndef WEIR_RESULTS_IMPORT_WORKER_RANGES_H_
#define WEIR_RESULTS_IMPORT_WORKER_RANGES_H_

#include <cstddef>
#include <set>
#include <tuple>
#include <vector>

#include "results/import/operation_names.h"

namespace weir::results {

struct NamedRange {
  NamedOperation operation;
  double start_microseconds = 0, microseconds = 0;
};

// Equal for ranges of the same operation, also in other steps.
using RangeKey = std::tuple<RecordedKind, int, int, int>;
inline RangeKey KeyOf(const NamedOperation& o) {
  return {o.kind, o.stage, o.chunk, o.microbatch};
}

struct WorkerRanges {
  std::vector<NamedRange> ranges;  // by start
  size_t file = 0;                 // index
  bool on_gpu = false;             // else the ranges are those of the host
  // When steps of the profiler start, on the GPU and on the host.
  std::set<double> gpu_steps, host_steps;
};

// Removes ranges that are recorded twice with the same times. Returns how many.
// Requires: they are sorted by start.
size_t DropCopies(std::vector<NamedRange>* ranges);

// A range on several streams of a GPU is recorded once for each: merges those
// of one operation that overlap. Returns how many it removes. Requires: they
// are sorted by start.
size_t MergeStreams(std::vector<NamedRange>* ranges);

// Returns true if a pass has no number of a microbatch.
bool HasUnnumbered(const std::vector<NamedRange>& ranges);

struct RangeSteps {
  // Empty: the n-th time of a pass belongs to step n, and passes without number
  // are all in one step.
  std::vector<double> start_microseconds;
  // The starts hold for all operations, not only for passes.
  bool of_all = false;
};

// Returns when the steps of a worker start.
// - Of passes without numbers, after an optimizer step, or else with a step of
//   the profiler.
// - Of passes with numbers nothing if they all run equally often. Else with a
//   step of the profiler on the same clock, or else when the microbatches of a
//   stage begin again.
RangeSteps FindSteps(const WorkerRanges& worker);

}  // namespace weir::results

#endif  // WEIR_RESULTS_IMPORT_WORKER_RANGES_H_
