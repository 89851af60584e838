// SPDX-License-Identifier: Apache-2.0
#include "results/trace/trace_events.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "results/validate.h"

namespace weir::results {
namespace {

constexpr size_t kNumLanes = std::size(kAllLanes);
constexpr double kMaxSeconds = 9e9;  // 9e18 ns fit in 63 bits

// A slice without a track.
struct Candidate {
  double start_seconds;
  double end_seconds;
  int64_t cause;  // see CauseOf
  uint32_t gpu;
  uint32_t event;
  Lane lane;
};

// Returns a sort key for zero-duration events at equal times: forwards by
// increasing stage, then backwards by decreasing stage, each pass before its
// send.
int64_t CauseOf(bool forward, int64_t stage, bool transfer) {
  constexpr int64_t kBackward = int64_t{1} << 34;
  return (forward ? 2 * stage : kBackward - 2 * stage) + (transfer ? 1 : 0);
}

constexpr int64_t kNoCause = int64_t{1} << 40;

Lane LaneOf(Timeline::Actions::Op op) {
  if (op == Timeline::Actions::OFFLOAD) return Lane::kToHost;
  return op == Timeline::Actions::RELOAD ? Lane::kFromHost : Lane::kCompute;
}

Lane LaneOfCollective(Timeline::Collectives::Kind kind) {
  switch (kind) {
    case Timeline::Collectives::GRADIENT_REDUCTION:
    case Timeline::Collectives::TIED_REDUCTION:
      return Lane::kGradientReduction;
    case Timeline::Collectives::WEIGHT_GATHER:
      return Lane::kWeightGather;
    case Timeline::Collectives::EXPERT_EXCHANGE:
      return Lane::kExpertExchange;
    case Timeline::Collectives::CONTEXT_EXCHANGE:
      return Lane::kContextExchange;
    default:
      return Lane::kTensorCollective;
  }
}

template <typename Columns>
Candidate At(const Columns& columns, int i, uint32_t gpu, Lane lane,
             int64_t cause) {
  return {columns.start_seconds(i),
          columns.end_seconds(i),
          cause,
          gpu,
          static_cast<uint32_t>(i),
          lane};
}

std::vector<Candidate> Candidates(const Result& result) {
  const Timeline& timeline = result.timeline();
  const HostCopies& copies = result.host_copies();
  const auto& actions = timeline.actions();
  const auto& transfers = timeline.transfers();
  const auto& collectives = timeline.collectives();
  std::vector<Candidate> all;
  all.reserve(static_cast<size_t>(actions.gpu_size()) +
              2 * static_cast<size_t>(transfers.kind_size()) +
              static_cast<size_t>(collectives.gpu_size()) +
              static_cast<size_t>(copies.gpu_size()));
  for (int i = 0; i < actions.gpu_size(); ++i) {
    const int64_t cause =
        actions.op(i) < Timeline::Actions::BACKWARD_WEIGHT
            ? CauseOf(actions.op(i) == Timeline::Actions::FORWARD,
                      actions.stage(i), false)
            : kNoCause;
    all.push_back(At(actions, i, actions.gpu(i), LaneOf(actions.op(i)), cause));
  }
  for (int i = 0; i < transfers.kind_size(); ++i) {
    const int64_t cause =
        CauseOf(transfers.kind(i) == Timeline::Transfers::ACTIVATION,
                transfers.stage(i), true);
    all.push_back(At(transfers, i, transfers.from_gpu(i), Lane::kSend, cause));
    all.push_back(At(transfers, i, transfers.to_gpu(i), Lane::kReceive, cause));
  }
  for (int i = 0; i < collectives.gpu_size(); ++i) {
    all.push_back(At(collectives, i, collectives.gpu(i),
                     LaneOfCollective(collectives.kind(i)), kNoCause));
  }
  for (int i = 0; i < copies.gpu_size(); ++i) {
    all.push_back(At(copies, i, copies.gpu(i),
                     copies.op(i) == Timeline::Actions::OFFLOAD
                         ? Lane::kLayersToHost
                         : Lane::kLayersFromHost,
                     kNoCause));
  }
  std::sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
    return std::tie(a.start_seconds, a.end_seconds, a.cause, a.lane, a.event) <
           std::tie(b.start_seconds, b.end_seconds, b.cause, b.lane, b.event);
  });
  return all;
}

// The tracks of one lane of one GPU: the first free track takes the next slice;
// a new one is opened if none is free.
class TrackPool {
 public:
  // Returns std::nullopt if no track is free. Requires: starts do not decrease.
  std::optional<uint32_t> Take(int64_t start_ns) {
    while (!taken_.empty() && taken_.top().first <= start_ns) {
      free_.push(taken_.top().second);
      taken_.pop();
    }
    if (free_.empty()) return std::nullopt;
    const uint32_t track = free_.top();
    free_.pop();
    return track;
  }

  void Hold(uint32_t track, int64_t end_ns) { taken_.emplace(end_ns, track); }

 private:
  template <typename T>
  using MinHeap = std::priority_queue<T, std::vector<T>, std::greater<T>>;
  MinHeap<std::pair<int64_t, uint32_t>> taken_;
  MinHeap<uint32_t> free_;
};

void PlaceSlices(const std::vector<Candidate>& candidates, size_t num_gpus,
                 TraceEvents* events) {
  std::vector<TrackPool> pools(num_gpus * kNumLanes);
  events->slices.reserve(candidates.size());
  for (const Candidate& c : candidates) {
    TrackPool& pool = pools[c.gpu * kNumLanes + static_cast<size_t>(c.lane)];
    // Rounding keeps the order of times, so slices that do not overlap in
    // seconds do not overlap in nanoseconds.
    const int64_t start_ns = ToNanoseconds(c.start_seconds);
    const int64_t end_ns = ToNanoseconds(c.end_seconds);
    std::optional<uint32_t> track = pool.Take(start_ns);
    if (!track.has_value()) {
      track = static_cast<uint32_t>(events->tracks.size());
      events->tracks.push_back({c.gpu, c.lane});
    }
    pool.Hold(*track, end_ns);
    events->slices.push_back({start_ns, end_ns, *track, c.event});
  }
}

// Indices of slices by what they show.
struct SliceIndex {
  // The action that computes (gpu, stage, microbatch, forward or backward); the
  // W part of a backward neither sends nor receives.
  using Key = std::tuple<uint32_t, int64_t, int32_t, bool>;
  absl::flat_hash_map<Key, uint32_t> actions;
  std::vector<uint32_t> sends;  // [transfer]
};

SliceIndex IndexSlices(const Timeline& timeline, const TraceEvents& events) {
  const auto& actions = timeline.actions();
  SliceIndex index;
  index.actions.reserve(static_cast<size_t>(actions.gpu_size()));
  index.sends.resize(static_cast<size_t>(timeline.transfers().kind_size()));
  for (size_t i = 0; i < events.slices.size(); ++i) {
    const TraceSlice& slice = events.slices[i];
    const Lane lane = events.tracks[slice.track].lane;
    const int event = static_cast<int>(slice.event);
    if (lane == Lane::kSend) {
      index.sends[slice.event] = static_cast<uint32_t>(i);
    } else if (lane == Lane::kCompute &&
               actions.op(event) < Timeline::Actions::BACKWARD_WEIGHT) {
      index.actions.emplace(
          SliceIndex::Key(actions.gpu(event), actions.stage(event),
                          actions.microbatch(event),
                          actions.op(event) == Timeline::Actions::FORWARD),
          static_cast<uint32_t>(i));
    }
  }
  return index;
}

struct Link {
  uint32_t slice;
  FlowPoint point;
};

// Appends the flow of one transfer. Leaves out an end that the timeline does
// not show, or shows in the wrong order; a flow needs two ends.
void AppendFlow(const Timeline& timeline, uint32_t transfer,
                const SliceIndex& index, TraceEvents* events,
                std::vector<Link>* links) {
  const auto& transfers = timeline.transfers();
  const int i = static_cast<int>(transfer);
  const bool forward = transfers.kind(i) == Timeline::Transfers::ACTIVATION;
  const int64_t stage = transfers.stage(i);
  const uint32_t send = index.sends[transfer];
  const auto producer = index.actions.find(SliceIndex::Key(
      transfers.from_gpu(i), stage, transfers.microbatch(i), forward));
  const auto consumer = index.actions.find(
      SliceIndex::Key(transfers.to_gpu(i), forward ? stage + 1 : stage - 1,
                      transfers.microbatch(i), forward));
  const bool begins =
      producer != index.actions.end() && producer->second < send;
  const bool ends = consumer != index.actions.end() && consumer->second > send;

  events->transfer_op[transfer] =
      forward ? Timeline::Actions::FORWARD : Timeline::Actions::BACKWARD;
  if (producer != index.actions.end()) {
    const uint32_t action = events->slices[producer->second].event;
    events->transfer_op[transfer] =
        timeline.actions().op(static_cast<int>(action));
  }
  if (!begins && !ends) return;

  using Step = FlowPoint::Step;
  const Step middle =
      begins && ends ? Step::kThrough : (begins ? Step::kEnd : Step::kBegin);
  links->push_back({send, {transfer, middle}});
  if (begins) links->push_back({producer->second, {transfer, Step::kBegin}});
  if (ends) links->push_back({consumer->second, {transfer, Step::kEnd}});
}

void ConnectFlows(const Timeline& timeline, TraceEvents* events) {
  const SliceIndex index = IndexSlices(timeline, *events);
  events->transfer_op.resize(index.sends.size());
  std::vector<Link> links;
  links.reserve(3 * index.sends.size());
  for (uint32_t i = 0; i < index.sends.size(); ++i) {
    AppendFlow(timeline, i, index, events, &links);
  }

  events->first_flow.assign(events->slices.size() + 1, 0);
  for (const Link& link : links) ++events->first_flow[link.slice + 1];
  for (size_t i = 0; i < events->slices.size(); ++i) {
    events->first_flow[i + 1] += events->first_flow[i];
  }
  std::vector<uint32_t> next = events->first_flow;
  events->flow_points.resize(links.size());
  for (const Link& link : links) {
    events->flow_points[next[link.slice]++] = link.point;
  }
}

}  // namespace

absl::StatusOr<TraceEvents> LayOutTrace(const Result& result) {
  if (!result.has_timeline()) {
    return absl::FailedPreconditionError(
        "the result has no timeline, expected one written by simulate --out");
  }
  RETURN_IF_ERROR(ValidateTimeline("timeline", result));
  const std::vector<Candidate> candidates = Candidates(result);
  double last_seconds = 0;
  for (const Candidate& c : candidates) {
    last_seconds = std::max(last_seconds, c.end_seconds);
  }
  for (double seconds : result.timeline().memory().seconds()) {
    last_seconds = std::max(last_seconds, seconds);
  }
  if (last_seconds > kMaxSeconds) {
    return absl::InvalidArgumentError(absl::StrCat(
        "timeline: ends at ", last_seconds, " s, expected at most ",
        kMaxSeconds, " s, as traces count nanoseconds in 64 bits"));
  }
  TraceEvents events;
  PlaceSlices(candidates, static_cast<size_t>(result.ranks_size()), &events);
  ConnectFlows(result.timeline(), &events);
  return events;
}

int64_t ToNanoseconds(double seconds) { return std::llround(seconds * 1e9); }

}  // namespace weir::results
