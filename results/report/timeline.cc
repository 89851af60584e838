// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdint>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "base/status_macros.h"
#include "results/compare/idle_causes.h"
#include "results/report/sections.h"
#include "results/trace/trace_events.h"

namespace weir::results {
namespace {

// Numbers of kinds of slices in the data; web/src/kinds.ts has the same.
constexpr uint32_t kSendKinds = 10;     // + Timeline.Transfers.Kind
constexpr uint32_t kReceiveKinds = 12;  // + Timeline.Transfers.Kind
constexpr uint32_t kOffloadKind = 14, kReloadKind = 15;  // of one block
constexpr uint32_t kCollectiveKinds = 20;  // + Timeline.Collectives.Kind
constexpr uint32_t kIdleKinds = 30;        // + IdleCause
constexpr uint32_t kDrainKind = kIdleKinds + kNumIdleCauses;

constexpr int kNone = -1;

struct Slice {
  double start_seconds = 0, end_seconds = 0;
  uint32_t kind = 0;
  int32_t stage = 0, microbatch = 0;
  uint32_t num_microbatches = 1;
  int32_t version = kNone;
  int32_t peer = kNone;  // pipeline rank
  double bytes = 0;
  int64_t trace_slice = kNone;  // index into TraceEvents::slices
};

struct Row {
  uint32_t rank = 0;
  Lane lane = Lane::kCompute;
  std::vector<Slice> slices;  // by start, without overlap
};

bool IsInsidePass(Lane lane) {
  return lane == Lane::kTensorCollective || lane == Lane::kExpertExchange ||
         lane == Lane::kContextExchange;
}

// Lays out the events of one pipeline.
class PipelineRows {
 public:
  PipelineRows(const ShownPipeline& pipeline, const TraceEvents& trace)
      : pipeline_(pipeline), in_(pipeline.result), trace_(trace) {}

  std::vector<Row> Lay() {
    for (const TraceTrack& track : trace_.tracks) {
      rows_.push_back({RankOf(track.gpu), track.lane, {}});
    }
    for (size_t i = 0; i < trace_.slices.size(); ++i) {
      rows_[trace_.slices[i].track].slices.push_back(SliceOf(i));
    }
    std::stable_sort(
        rows_.begin(), rows_.end(), [](const Row& a, const Row& b) {
          return std::tie(a.rank, a.lane) < std::tie(b.rank, b.lane);
        });
    std::vector<Row> all = std::exchange(rows_, {});
    for (size_t i = 0; i < all.size();) {
      size_t end = i;
      while (end < all.size() && all[end].rank == all[i].rank) ++end;
      AddRank({all.data() + i, end - i});
      i = end;
    }
    return std::move(rows_);
  }

 private:
  uint32_t RankOf(uint32_t gpu) const {
    return in_.ranks(static_cast<int>(gpu)).rank();
  }

  Slice SliceOf(size_t index) const {
    const TraceSlice& traced = trace_.slices[index];
    const int i = static_cast<int>(traced.event);
    const Lane lane = trace_.tracks[traced.track].lane;
    const Timeline& timeline = in_.timeline();
    Slice slice;
    slice.trace_slice = static_cast<int64_t>(index);
    const auto fill = [&](const auto& columns) {
      slice.start_seconds = columns.start_seconds(i);
      slice.end_seconds = columns.end_seconds(i);
      slice.stage = columns.stage(i);
      slice.microbatch = columns.microbatch(i);
    };
    switch (lane) {
      case Lane::kCompute:
      case Lane::kToHost:
      case Lane::kFromHost: {
        const auto& actions = timeline.actions();
        fill(actions);
        slice.kind = actions.op(i);
        if (!actions.num_microbatches().empty()) {
          slice.num_microbatches = actions.num_microbatches(i);
        }
        if (!actions.weight_version().empty()) {
          slice.version = actions.weight_version(i);
        }
        return slice;
      }
      case Lane::kSend:
      case Lane::kReceive: {
        const auto& transfers = timeline.transfers();
        fill(transfers);
        const bool sends = lane == Lane::kSend;
        slice.kind = (sends ? kSendKinds : kReceiveKinds) + transfers.kind(i);
        slice.peer = static_cast<int32_t>(
            RankOf(sends ? transfers.to_gpu(i) : transfers.from_gpu(i)));
        slice.bytes = transfers.bytes(i);
        return slice;
      }
      case Lane::kLayersToHost:
      case Lane::kLayersFromHost:
        fill(in_.host_copies());
        slice.kind = lane == Lane::kLayersToHost ? kOffloadKind : kReloadKind;
        slice.bytes = in_.host_copies().bytes(i);
        return slice;
      default:
        fill(timeline.collectives());
        slice.kind = kCollectiveKinds + timeline.collectives().kind(i);
        slice.bytes = timeline.collectives().bytes(i);
        return slice;
    }
  }

  // Adds the rows of one rank. The collectives inside of passes, and idle time,
  // go between the passes of its first row.
  void AddRank(std::span<Row> rows) {
    Row main = {rows.front().rank, Lane::kCompute, {}};
    std::span<Row> others = rows;
    if (rows.front().lane == Lane::kCompute) {
      main = std::move(rows.front());
      others = rows.subspan(1);
    }
    std::vector<Slice> between = IdleOf(main.rank);
    for (Row& row : others) {
      if (!IsInsidePass(row.lane)) continue;
      between.insert(between.end(), row.slices.begin(), row.slices.end());
    }
    absl::flat_hash_set<int64_t> left;  // trace slices
    for (const Slice& slice : Insert(std::move(between), &main.slices)) {
      left.insert(slice.trace_slice);
    }
    rows_.push_back(std::move(main));
    for (Row& row : others) {
      if (IsInsidePass(row.lane)) {
        std::erase_if(row.slices, [&](const Slice& slice) {
          return !left.contains(slice.trace_slice);
        });
      }
      if (!row.slices.empty()) rows_.push_back(std::move(row));
    }
  }

  std::vector<Slice> IdleOf(uint32_t rank) {
    std::vector<Slice> slices;
    if (!pipeline_.events.has_value()) return slices;
    if (idle_.empty()) idle_ = FindIdlePieces(*pipeline_.events);
    if (rank >= idle_.size()) return slices;
    for (const IdlePiece& piece : idle_[rank]) {
      Slice slice;
      slice.start_seconds = piece.from_seconds;
      slice.end_seconds = piece.to_seconds;
      slice.kind = kDrainKind;
      if (piece.next != IdlePiece::kNone) {
        const TimelineAction& next =
            pipeline_.events->ranks[rank][static_cast<size_t>(piece.next)];
        slice.kind = kIdleKinds + static_cast<uint32_t>(piece.cause);
        slice.stage = next.stage;
        slice.microbatch = next.microbatch;
        slice.peer = piece.awaited_rank;
      }
      slices.push_back(slice);
    }
    return slices;
  }

  // Inserts the slices that fit between those of a row; returns the others.
  static std::vector<Slice> Insert(std::vector<Slice> more,
                                   std::vector<Slice>* row) {
    const auto by_start = [](const Slice& a, const Slice& b) {
      return std::tie(a.start_seconds, a.end_seconds) <
             std::tie(b.start_seconds, b.end_seconds);
    };
    std::sort(more.begin(), more.end(), by_start);
    std::vector<Slice> merged, left;
    merged.reserve(row->size() + more.size());
    size_t next = 0;
    double until = 0;
    for (const Slice& slice : more) {
      while (next < row->size() &&
             (*row)[next].end_seconds <= slice.start_seconds) {
        until = (*row)[next].end_seconds;
        merged.push_back((*row)[next]);
        ++next;
      }
      const bool fits = until <= slice.start_seconds &&
                        (next == row->size() ||
                         (*row)[next].start_seconds >= slice.end_seconds);
      if (!fits) {
        left.push_back(slice);
        continue;
      }
      until = slice.end_seconds;
      merged.push_back(slice);
    }
    merged.insert(merged.end(), row->begin() + static_cast<int64_t>(next),
                  row->end());
    *row = std::move(merged);
    return left;
  }

  const ShownPipeline& pipeline_;
  const Result& in_;
  const TraceEvents& trace_;
  std::vector<Row> rows_;
  std::vector<std::vector<IdlePiece>> idle_;  // [rank]
};

// Collects the columns of all pipelines.
class Columns {
 public:
  explicit Columns(const Ticks& ticks) : ticks_(ticks) {}

  Json Add(const ShownPipeline& pipeline, const TraceEvents& trace) {
    const size_t first = kind_.size();
    std::vector<uint32_t> index_of(trace.slices.size(), 0);  // [trace slice]
    Json rows = Json::array();
    for (const Row& row : PipelineRows(pipeline, trace).Lay()) {
      uint32_t until = 0;
      for (const Slice& slice : row.slices) {
        if (slice.trace_slice != kNone) {
          index_of[static_cast<size_t>(slice.trace_slice)] =
              static_cast<uint32_t>(kind_.size());
        }
        AddSlice(slice, &until);
      }
      rows.push_back({{"rank", row.rank},
                      {"lane", std::string(LaneName(row.lane))},
                      {"size", row.slices.size()}});
    }
    input_.resize(kind_.size(), 0);
    AddInputs(trace, index_of);
    return {{"run", pipeline.run},
            {"replica", pipeline.group.replica},
            {"tensor_rank", pipeline.group.tensor_rank},
            {"pipelines", pipeline.group.num_pipelines},
            {"first", first},
            {"rows", rows}};
  }

  Json Finish(DataBlock* data) const {
    return {{"gap", data->Add(gap_)},
            {"duration", data->Add(duration_)},
            {"kind", data->Add(kind_)},
            {"stage", data->Add(stage_)},
            {"microbatch", data->Add(microbatch_)},
            {"span", data->Add(span_)},
            {"version", data->Add(version_)},
            {"peer", data->Add(peer_)},
            {"bytes", data->Add(bytes_)},
            {"bytes_values", data->AddDoubles(byte_values_.values())},
            {"input", data->Add(input_)}};
  }

 private:
  void AddSlice(const Slice& slice, uint32_t* until) {
    const uint32_t start = std::max(ticks_.Of(slice.start_seconds), *until);
    const uint32_t end = std::max(ticks_.Of(slice.end_seconds), start);
    gap_.push_back(start - *until);
    duration_.push_back(end - start);
    *until = end;
    kind_.push_back(slice.kind);
    stage_.push_back(static_cast<uint32_t>(slice.stage));
    microbatch_.push_back(static_cast<uint32_t>(slice.microbatch));
    span_.push_back(slice.num_microbatches);
    version_.push_back(static_cast<uint32_t>(slice.version + 1));
    peer_.push_back(static_cast<uint32_t>(slice.peer + 1));
    bytes_.push_back(byte_values_.IndexOf(slice.bytes));
  }

  // For each action whose input another rank computed: the distance to the
  // slice of that action, modulo 2^32.
  void AddInputs(const TraceEvents& trace,
                 const std::vector<uint32_t>& index_of) {
    constexpr uint32_t kAbsent = UINT32_MAX;
    std::vector<std::pair<uint32_t, uint32_t>> ends(
        trace.transfer_op.size(), {kAbsent, kAbsent});  // [transfer]
    for (size_t i = 0; i < trace.slices.size(); ++i) {
      if (trace.tracks[trace.slices[i].track].lane != Lane::kCompute) continue;
      for (const FlowPoint& point : trace.FlowPointsOf(i)) {
        auto& [from, to] = ends[point.transfer];
        (point.step == FlowPoint::Step::kBegin ? from : to) = index_of[i];
      }
    }
    for (const auto& [from, to] : ends) {
      if (from != kAbsent && to != kAbsent) input_[to] = to - from;
    }
  }

  const Ticks& ticks_;
  std::vector<uint32_t> gap_, duration_, kind_, stage_, microbatch_, span_,
      version_, peer_, bytes_, input_;
  ValueTable byte_values_;
};

double EndOf(const ShownPipeline& pipeline) {
  const Timeline& timeline = pipeline.result.timeline();
  double end = pipeline.result.makespan_seconds();
  for (const auto* ends :
       {&timeline.actions().end_seconds(), &timeline.transfers().end_seconds(),
        &timeline.collectives().end_seconds(), &timeline.memory().seconds()}) {
    for (const double seconds : *ends) end = std::max(end, seconds);
  }
  return end;
}

}  // namespace

absl::StatusOr<Json> TimelineSection(std::span<const ShownPipeline> pipelines,
                                     DataBlock* data) {
  double end = 0;
  for (const ShownPipeline& pipeline : pipelines) {
    end = std::max(end, EndOf(pipeline));
  }
  const Ticks ticks(end);
  Columns columns(ticks);
  Json panels = Json::array();
  for (const ShownPipeline& pipeline : pipelines) {
    ASSIGN_OR_RETURN(const TraceEvents trace, LayOutTrace(pipeline.result));
    Json panel = columns.Add(pipeline, trace);
    panel["from_seconds"] = pipeline.result.timeline().from_seconds();
    panel["idle_known"] = pipeline.events.has_value();
    panels.push_back(std::move(panel));
  }
  return Json({{"type", "timeline"},
               {"tick_seconds", ticks.tick_seconds()},
               {"end_ticks", ticks.Of(end)},
               {"panels", panels},
               {"columns", columns.Finish(data)}});
}

}  // namespace weir::results
