// SPDX-License-Identifier: Apache-2.0
// The events of one pipeline of a result, by rank, from which causes of idle
// time and comparisons of two results are computed.
#ifndef WEIR_RESULTS_PIPELINE_EVENTS_H_
#define WEIR_RESULTS_PIPELINE_EVENTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "results/result.pb.h"

namespace weir::results {

struct TimelineAction {
  Timeline::Actions::Op op = Timeline::Actions::FORWARD;
  int32_t stage = 0;
  int32_t microbatch = 0;  // for a step: the update
  uint32_t num_microbatches = 1;
  // Including the tensor and expert collectives inside.
  double start_seconds = 0, end_seconds = 0;

  double seconds() const { return end_seconds - start_seconds; }
  bool computes() const { return op <= Timeline::Actions::OPTIMIZER_STEP; }
};

// Returns "2F0", "2B0-3" or "2 step u3".
std::string ActionText(Timeline::Actions::Op op, int32_t stage,
                       int32_t microbatch, uint32_t num_microbatches);
std::string ActionText(const TimelineAction& action);

struct TimelineTransfer {
  int from_rank = 0, to_rank = 0;
  bool gradient = false;
  int32_t stage = 0;  // the sender
  int32_t microbatch = 0;
  double bytes = 0;
  // When its data was computed: Transfers.ready_seconds, else the end of the
  // pass that computed it, else the transfer's start; never after the start.
  double ready_seconds = 0;
  double start_seconds = 0, end_seconds = 0;
};

struct TimelineCollective {
  Timeline::Collectives::Kind kind = Timeline::Collectives::TENSOR;
  int32_t stage = 0;
  int32_t microbatch = 0;  // or the update
  double start_seconds = 0, end_seconds = 0;
};

// The events of replica 0 and tensor rank 0.
struct PipelineEvents {
  // At least the end of the last event.
  double makespan_seconds = 0;
  std::vector<std::vector<TimelineAction>> ranks;  // [rank], by start
  std::vector<TimelineTransfer> transfers;
  std::vector<std::vector<TimelineCollective>> collectives;  // [rank], by start
  std::vector<int> gpus;  // [rank]: the index into Result.ranks
  // The first and the last stage share an embedding table and are updated with
  // the sum of their gradients; the result has a reduction for it.
  bool tied = false;

  int num_ranks() const { return static_cast<int>(ranks.size()); }
};

// Returns FailedPrecondition without a timeline or if its beginning was left
// out, and InvalidArgument if it is invalid (ValidateTimeline) or replica 0
// does not consist of ranks 0, 1, 2, ..., each once.
absl::StatusOr<PipelineEvents> PipelineEventsOf(absl::string_view label,
                                                const Result& result);

}  // namespace weir::results

#endif  // WEIR_RESULTS_PIPELINE_EVENTS_H_
