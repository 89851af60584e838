// SPDX-License-Identifier: Apache-2.0
// Layout of a timeline for viewers, in which the slices of a track must not
// overlap. Both trace formats are written from it.
#ifndef WEIR_RESULTS_TRACE_TRACE_EVENTS_H_
#define WEIR_RESULTS_TRACE_TRACE_EVENTS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "results/result.pb.h"

namespace weir::results {

// Kinds of work that a GPU does concurrently, in the order of display.
enum class Lane : uint8_t {
  kCompute,
  kSend,
  kReceive,
  kTensorCollective,
  kGradientReduction,
  kWeightGather,
  kToHost,
  kFromHost,
  kExpertExchange,
  kContextExchange,
  kLayersToHost,  // Result.host_copies
  kLayersFromHost,
};

inline constexpr Lane kAllLanes[] = {Lane::kCompute,
                                     Lane::kSend,
                                     Lane::kReceive,
                                     Lane::kTensorCollective,
                                     Lane::kGradientReduction,
                                     Lane::kWeightGather,
                                     Lane::kToHost,
                                     Lane::kFromHost,
                                     Lane::kExpertExchange,
                                     Lane::kContextExchange,
                                     Lane::kLayersToHost,
                                     Lane::kLayersFromHost};

absl::string_view LaneName(Lane lane);      // "gradient all-reduce"
absl::string_view LaneCategory(Lane lane);  // "collective"

// One line of a viewer. A lane has as many tracks as slices overlap in it.
struct TraceTrack {
  uint32_t gpu;  // index into Result.ranks
  Lane lane;
};

struct TraceSlice {
  int64_t start_ns;
  int64_t end_ns;
  uint32_t track;  // index into TraceEvents::tracks
  uint32_t event;  // index into the columns of the lane's events
};

// The position of a slice in the flow of one transfer: from the action that
// produced the data over the send to the action that consumes it.
struct FlowPoint {
  enum class Step : uint8_t { kBegin, kThrough, kEnd };
  uint32_t transfer;  // index into Timeline.transfers
  Step step;
};

struct TraceEvents {
  std::vector<TraceTrack> tracks;
  // Ordered by start so that causes precede effects that start at the same
  // time, and slices of one track follow each other.
  std::vector<TraceSlice> slices;
  std::vector<uint32_t> first_flow;  // [slices + 1], into flow_points
  std::vector<FlowPoint> flow_points;
  // [transfer]: the op that produced its data.
  std::vector<Timeline::Actions::Op> transfer_op;

  std::span<const FlowPoint> FlowPointsOf(size_t slice) const {
    return {flow_points.data() + first_flow[slice],
            flow_points.data() + first_flow[slice + 1]};
  }
};

// Lays a timeline out. Returns FailedPrecondition if there is none,
// InvalidArgument if it is invalid (ValidateTimeline) or too long for
// nanoseconds.
absl::StatusOr<TraceEvents> LayOutTrace(const Result& result);

// Rounds to the nearest nanosecond, which keeps the order of times.
int64_t ToNanoseconds(double seconds);

// Returns "rank 3 replica 0 (gpu 24)", with the tensor rank if there are
// several.
std::vector<std::string> GpuNames(const Result& result);

// Appends a name such as "2F0", "2 step u3", "send 2F0 -> gpu 9", "recv 2F0 <-
// gpu 8", "collective 2 mb0" or "all-reduce 2 u3".
void AppendSliceName(const Result& result, const TraceEvents& events,
                     const TraceSlice& slice, std::string* out);

// Returns the bytes that a slice moves; negative if it moves none.
double SliceBytes(const Result& result, const TraceEvents& events,
                  const TraceSlice& slice);

}  // namespace weir::results

#endif  // WEIR_RESULTS_TRACE_TRACE_EVENTS_H_
