// SPDX-License-Identifier: Apache-2.0
#include "plan/search/plan_size.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "sim/bounds/bound.h"

namespace weir::plan {
namespace {

// Per candidate of any size, including its share of the seeds.
constexpr double kBytesPerCandidate = 256, kSecondsPerCandidate = 4e-5;
// Seconds per action to generate and bound an order, once for all candidates
// with the same numbers of ranks, chunks and microbatches; to rank a candidate;
// and to simulate it fully. kNumEstimates and kNumSimulated are typical numbers
// of candidates that a search ranks and simulates.
constexpr double kSecondsPerBoundedAction = 8e-8;
constexpr double kSecondsPerEstimatedAction = 5e-8, kNumEstimates = 300;
constexpr double kSecondsPerSimulatedAction = 2e-6, kNumSimulated = 5;
// Bytes per action of the longest order and of the orders that a process
// caches.
constexpr double kBytesPerAction = 64;
// Fraction of the orders that a search generates; it prunes the candidates of
// the others first.
constexpr double kMostExpanded = 1.0 / 8;

struct Counts {
  double candidates = 0;
  double actions = 0;  // of all candidates
  double orders = 0;   // actions of distinct orders
  double largest = 0;

  double mean() const { return candidates > 0 ? actions / candidates : 0; }
};

Counts CountsOf(const Space& space) {
  Counts counts;
  const double batch = space.base.scenario.batch().global_batch_size();
  std::set<std::tuple<int, int, double>> seen;
  for (const Shape& shape : space.shapes) {
    const double schedules =
        static_cast<double>(space.schedules_of(shape).size());
    const double microbatches =
        std::max(batch / shape.data / shape.microbatch_size, 1.0);
    const double actions = 2.0 * shape.pipeline * shape.chunks * microbatches;
    counts.candidates += schedules;
    counts.actions += schedules * actions;
    counts.largest = std::max(counts.largest, actions);
    if (seen.insert({shape.pipeline, shape.chunks, microbatches}).second) {
      counts.orders += schedules * actions;
    }
  }
  return counts;
}

SizeEstimate EstimateOf(const Counts& counts, int num_processes) {
  const double processes = std::max(num_processes, 1);
  SizeEstimate estimate;
  const double kept =
      std::min<double>(counts.orders * kMostExpanded, sim::kMostKeptActions);
  estimate.bytes = counts.candidates * kBytesPerCandidate +
                   processes * (counts.largest + kept) * kBytesPerAction;
  estimate.seconds =
      (counts.candidates * kSecondsPerCandidate +
       counts.orders * kSecondsPerBoundedAction +
       kNumEstimates * counts.mean() * kSecondsPerEstimatedAction +
       kNumSimulated * counts.mean() * kSecondsPerSimulatedAction) /
      processes;
  return estimate;
}

}  // namespace

SizeEstimate EstimateSearch(const Space& space, int num_processes) {
  return EstimateOf(CountsOf(space), num_processes);
}

absl::Status CheckSearchSize(const std::string& label,
                             const PlanRequest& request, int num_processes) {
  ASSIGN_OR_RETURN(const Space space, MakeSpace(label, request));
  const Counts counts = CountsOf(space);
  return CheckSize(
      label,
      absl::StrFormat("%.0f candidates with up to %.3g passes each",
                      counts.candidates, counts.largest),
      EstimateOf(counts, num_processes),
      "fewer or larger microbatches (--gbs, --mbs), or shorter lists of --tp, "
      "--pp, --schedule and --recompute");
}

}  // namespace weir::plan
