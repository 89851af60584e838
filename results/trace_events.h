// SPDX-License-Identifier: Apache-2.0
// A timeline laid out for viewers, which want slices on tracks that never
// overlap. Both trace formats are written from it.
#ifndef WEIR_RESULTS_TRACE_EVENTS_H_
#define WEIR_RESULTS_TRACE_EVENTS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "results/result.pb.h"

namespace weir {

// What a GPU does at the same time, in the order of display.
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
};

inline constexpr Lane kAllLanes[] = {Lane::kCompute,
                                     Lane::kSend,
                                     Lane::kReceive,
                                     Lane::kTensorCollective,
                                     Lane::kGradientReduction,
                                     Lane::kWeightGather,
                                     Lane::kToHost,
                                     Lane::kFromHost,
                                     Lane::kExpertExchange};

absl::string_view LaneName(Lane lane);      // "gradient all-reduce"
absl::string_view LaneCategory(Lane lane);  // "collective"

// One line of a viewer. A lane has as many tracks as things overlap in it.
struct TraceTrack {
  uint32_t gpu;  // index into Result.ranks
  Lane lane;
};

struct TraceSlice {
  int64_t start_ns;
  int64_t end_ns;
  uint32_t track;  // index into TraceEvents::tracks
  uint32_t event;  // index into the columns that the lane comes from
};

// A slice's place in the flow of one transfer: from the action that produced
// the data over the send to the action that consumes it.
struct FlowPoint {
  enum class Step : uint8_t { kBegin, kThrough, kEnd };
  uint32_t transfer;  // index into Timeline.transfers
  Step step;
};

struct TraceEvents {
  std::vector<TraceTrack> tracks;
  // Ordered by start so that causes come before effects that start at the same
  // time, and so that slices of one track follow each other.
  std::vector<TraceSlice> slices;
  std::vector<uint32_t> first_flow;  // [slices + 1], into flow_points
  std::vector<FlowPoint> flow_points;
  // Per transfer: the op that produced what it carries, as in Actions.op.
  std::vector<uint8_t> transfer_op;

  std::span<const FlowPoint> FlowPointsOf(size_t slice) const {
    return {flow_points.data() + first_flow[slice],
            flow_points.data() + first_flow[slice + 1]};
  }
};

// Lays a timeline out. FailedPrecondition when there is none, InvalidArgument
// when it is not valid (ValidateTimeline) or lasts longer than nanoseconds can
// count.
absl::StatusOr<TraceEvents> LayOutTrace(const Result& result);

// Rounds to the next nanosecond, which keeps the order of times.
int64_t ToNanoseconds(double seconds);

// "rank 3 replica 0 (gpu 24)", with the tensor rank where there are several.
std::vector<std::string> GpuNames(const Result& result);

// "2F0", "2 step u3", "send 2F0 -> gpu 9", "recv 2F0 <- gpu 8",
// "collective 2 mb0", "all-reduce 2 u3".
void AppendSliceName(const Result& result, const TraceEvents& events,
                     const TraceSlice& slice, std::string* out);

// Bytes that a slice moves; negative for one that moves none.
double SliceBytes(const Result& result, const TraceEvents& events,
                  const TraceSlice& slice);

}  // namespace weir

#endif  // WEIR_RESULTS_TRACE_EVENTS_H_
