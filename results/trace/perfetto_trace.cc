// SPDX-License-Identifier: Apache-2.0
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <string>
#include <vector>

#include "base/output_file.h"
#include "base/status_macros.h"
#include "results/trace/perfetto_trace.pb.h"
#include "results/trace/trace.h"
#include "results/trace/trace_events.h"

namespace weir::results {
namespace {

using perfetto::TracePacket;
using perfetto::TrackDescriptor;
using perfetto::TrackEvent;

constexpr uint32_t kSequence = 1;
constexpr uint32_t kStateCleared = 1;
constexpr uint32_t kNeedsState = 2;

// Tracks are numbered densely: 0 is the root, then a process and a counter per
// GPU, then the tracks of slices.
uint64_t ProcessUuid(uint32_t gpu) { return 1 + 2 * uint64_t{gpu}; }
uint64_t MemoryUuid(uint32_t gpu) { return 2 + 2 * uint64_t{gpu}; }

class PerfettoWriter {
 public:
  PerfettoWriter(const Result& result, absl::Span<const std::string> names,
                 const TraceEvents& events, std::string* out)
      : result_(result),
        names_(names),
        events_(events),
        stream_(out),
        coded_(&stream_) {}

  void WriteAll() {
    WriteProcesses();
    WriteTracks();
    WriteCategories();
    // In order of start, and of cause at equal times: the reader sorts by time,
    // keeps this order among equal times and follows flows along it.
    for (size_t i = 0; i < events_.slices.size(); ++i) WriteSlice(i);
    WriteMemory();
  }

 private:
  TrackDescriptor* Track(uint64_t uuid) {
    packet_.Clear();
    TrackDescriptor* track = packet_.mutable_track_descriptor();
    track->set_uuid(uuid);
    return track;
  }

  TrackEvent* Event(int64_t ns, TrackEvent::Type type, uint64_t track_uuid) {
    packet_.Clear();
    packet_.set_timestamp(static_cast<uint64_t>(ns));
    packet_.set_trusted_packet_sequence_id(kSequence);
    packet_.set_sequence_flags(kNeedsState);
    TrackEvent* event = packet_.mutable_track_event();
    event->set_type(type);
    event->set_track_uuid(track_uuid);
    return event;
  }

  // Writes field 1 of Trace for each packet: a whole Trace is never in memory.
  void Emit() {
    constexpr uint32_t kPacketTag = (1 << 3) | 2;
    coded_.WriteTag(kPacketTag);
    coded_.WriteVarint32(static_cast<uint32_t>(packet_.ByteSizeLong()));
    packet_.SerializeWithCachedSizes(&coded_);
  }

  void WriteProcesses() {
    TrackDescriptor* root = Track(0);
    root->set_description(std::string(kOutputMark));
    root->set_process_ordering(TrackDescriptor::PROCESS_ORDERING_EXPLICIT);
    Emit();
    for (int i = 0; i < result_.ranks_size(); ++i) {
      const auto gpu = static_cast<uint32_t>(i);
      TrackDescriptor* track = Track(ProcessUuid(gpu));
      track->set_sibling_order_rank(i);
      track->set_child_ordering(TrackDescriptor::EXPLICIT);
      track->mutable_process()->set_pid(i + 1);
      track->mutable_process()->set_legacy_sort_index(i);
      track->mutable_process()->set_process_name(names_[gpu]);
      Emit();
      track = Track(MemoryUuid(gpu));
      track->set_name("memory");
      track->set_parent_uuid(ProcessUuid(gpu));
      track->set_sibling_order_rank(-1);
      track->mutable_counter()->set_unit(
          perfetto::CounterDescriptor::UNIT_SIZE_BYTES);
      Emit();
    }
  }

  uint64_t SliceUuid(uint32_t track) const {
    return 1 + 2 * static_cast<uint64_t>(result_.ranks_size()) + track;
  }

  void WriteTracks() {
    for (uint32_t i = 0; i < events_.tracks.size(); ++i) {
      TrackDescriptor* track = Track(SliceUuid(i));
      track->set_name(std::string(LaneName(events_.tracks[i].lane)));
      track->set_parent_uuid(ProcessUuid(events_.tracks[i].gpu));
      track->set_sibling_order_rank(static_cast<int>(events_.tracks[i].lane));
      Emit();
    }
  }

  // Writes the first packet of the sequence.
  void WriteCategories() {
    packet_.Clear();
    packet_.set_trusted_packet_sequence_id(kSequence);
    packet_.set_sequence_flags(kStateCleared);
    for (Lane lane : kAllLanes) {
      auto* category = packet_.mutable_interned_data()->add_event_categories();
      category->set_iid(CategoryId(lane));
      category->set_name(std::string(LaneCategory(lane)));
    }
    Emit();
  }

  static uint64_t CategoryId(Lane lane) {
    return 1 + static_cast<uint64_t>(lane);
  }

  void WriteSlice(size_t i) {
    const TraceSlice& slice = events_.slices[i];
    const uint64_t uuid = SliceUuid(slice.track);
    TrackEvent* event =
        Event(slice.start_ns, TrackEvent::TYPE_SLICE_BEGIN, uuid);
    AppendSliceName(result_, events_, slice, event->mutable_name());
    event->add_category_iids(CategoryId(events_.tracks[slice.track].lane));
    const double bytes = SliceBytes(result_, events_, slice);
    if (bytes >= 0) {
      auto* annotation = event->add_debug_annotations();
      annotation->set_name("bytes");
      annotation->set_double_value(bytes);
    }
    for (const FlowPoint& point : events_.FlowPointsOf(i)) {
      const uint64_t flow = uint64_t{point.transfer} + 1;
      if (point.step == FlowPoint::Step::kEnd) {
        event->add_terminating_flow_ids(flow);
      } else {
        event->add_flow_ids(flow);
      }
    }
    Emit();
    Event(slice.end_ns, TrackEvent::TYPE_SLICE_END, uuid);
    Emit();
  }

  void WriteMemory() {
    const auto& memory = result_.timeline().memory();
    for (int i = 0; i < memory.gpu_size(); ++i) {
      Event(ToNanoseconds(memory.seconds(i)), TrackEvent::TYPE_COUNTER,
            MemoryUuid(memory.gpu(i)))
          ->set_double_counter_value(memory.bytes(i));
      Emit();
    }
  }

  const Result& result_;
  const absl::Span<const std::string> names_;
  const TraceEvents& events_;
  google::protobuf::io::StringOutputStream stream_;
  google::protobuf::io::CodedOutputStream coded_;
  TracePacket packet_;  // reused, to keep its memory
};

}  // namespace

absl::StatusOr<std::string> PerfettoTrace(const Result& result,
                                          absl::Span<const std::string> names) {
  ASSIGN_OR_RETURN(const TraceEvents events, LayOutTrace(result));
  std::vector<std::string> gpu_names;
  if (names.empty()) {
    gpu_names = GpuNames(result);
    names = gpu_names;
  }
  std::string trace;
  trace.reserve(events.slices.size() * 64);
  PerfettoWriter(result, names, events, &trace).WriteAll();
  return trace;
}

}  // namespace weir::results
