// SPDX-License-Identifier: Apache-2.0
#include "plan/plan_size.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"

namespace weir {
namespace {

// Of one candidate whatever its size, and of one action in its bound, in a
// ranked run, of which the search makes up to so many, and in a full run.
constexpr double kBytesPerCandidate = 256, kSecondsPerCandidate = 2e-5;
constexpr double kSecondsPerBoundedAction = 2e-9;
constexpr double kSecondsPerRankedAction = 5e-8;
constexpr double kNumRanked = 300;
constexpr double kSecondsPerSimulatedAction = 2e-6;
constexpr double kNumSimulated = 5;
constexpr double kBytesPerAction = 160;

struct Counts {
  double candidates = 0, actions = 0, largest = 0;
};

Counts CountsOf(const Space& space) {
  Counts counts;
  const double batch = space.base.scenario.batch().global_batch_size();
  for (const Shape& shape : space.shapes) {
    const double schedules =
        static_cast<double>(space.schedules_of(shape).size());
    const double microbatches =
        std::max(batch / shape.data / shape.microbatch_size, 1.0);
    const double actions = 2.0 * shape.pipeline * shape.chunks * microbatches;
    counts.candidates += schedules;
    counts.actions += schedules * actions;
    counts.largest = std::max(counts.largest, actions);
  }
  return counts;
}

SizeEstimate EstimateOf(const Counts& counts, int num_processes) {
  const double processes = std::max(num_processes, 1);
  SizeEstimate estimate;
  estimate.bytes = counts.candidates * kBytesPerCandidate +
                   processes * counts.largest * kBytesPerAction;
  estimate.seconds =
      (counts.candidates * kSecondsPerCandidate +
       counts.actions * kSecondsPerBoundedAction +
       kNumRanked * counts.largest * kSecondsPerRankedAction +
       kNumSimulated * counts.largest * kSecondsPerSimulatedAction) /
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
      absl::StrFormat("%.0f candidates of up to %.3g passes", counts.candidates,
                      counts.largest),
      EstimateOf(counts, num_processes),
      "fewer or larger microbatches (--gbs, --mbs), or shorter lists of --tp, "
      "--pp, --schedule and --recompute");
}

}  // namespace weir
