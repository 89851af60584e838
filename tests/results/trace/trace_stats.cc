// SPDX-License-Identifier: Apache-2.0
#include "tests/results/trace/trace_stats.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "results/trace/perfetto_trace.pb.h"

namespace weir::results {
namespace {

using Json = nlohmann::json;
using perfetto::TrackEvent;

// Follows flows as trace_processor does: an id that is not active begins a
// flow, an active one continues it, and a terminating one ends it.
class Flows {
 public:
  explicit Flows(ReadTrace* trace) : trace_(trace) {}

  void Touch(uint64_t id, size_t slice) {
    if (!active_.count(id) && trace_->flows.count(id)) {
      trace_->errors.push_back(absl::StrCat("flow ", id, " begins twice"));
    }
    active_.insert(id);
    trace_->flows[id].push_back(slice);
  }

  void End(uint64_t id, size_t slice) {
    if (active_.erase(id) == 0) {
      trace_->errors.push_back(absl::StrCat("flow ", id, " ends unbegun"));
    }
    trace_->flows[id].push_back(slice);
  }

  void Finish() {
    for (uint64_t id : active_) {
      trace_->errors.push_back(absl::StrCat("flow ", id, " never ends"));
    }
  }

 private:
  ReadTrace* trace_;
  std::set<uint64_t> active_;
};

class PerfettoReader {
 public:
  ReadTrace Read(absl::string_view bytes) {
    perfetto::Trace trace;
    if (!trace.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      read_.errors.push_back("not a trace");
      return read_;
    }
    std::vector<const perfetto::TracePacket*> events;
    for (const auto& packet : trace.packet()) {
      if (packet.has_track_descriptor()) Describe(packet.track_descriptor());
      if (packet.has_track_event()) events.push_back(&packet);
      for (const auto& c : packet.interned_data().event_categories()) {
        categories_.insert(c.iid());
      }
    }
    std::stable_sort(events.begin(), events.end(),
                     [](const auto* a, const auto* b) {
                       return a->timestamp() < b->timestamp();
                     });
    for (const auto* packet : events) Take(*packet);
    for (const auto& [uuid, open] : open_) {
      if (!open.empty()) Error("a slice never ends");
    }
    flows_.Finish();
    return read_;
  }

 private:
  struct Track {
    std::string name;
    uint64_t parent = 0;
    bool counter = false;
  };

  void Error(absl::string_view what) { read_.errors.emplace_back(what); }

  void Describe(const perfetto::TrackDescriptor& d) {
    if (tracks_.count(d.uuid())) Error("two tracks of one uuid");
    if (d.has_parent_uuid() && !tracks_.count(d.parent_uuid())) {
      Error("a track before its parent");
    }
    Track& track = tracks_[d.uuid()];
    track.name = d.has_process() ? d.process().process_name() : d.name();
    track.parent = d.parent_uuid();
    track.counter = d.has_counter();
    if (d.has_process()) read_.processes.push_back(track.name);
  }

  void Take(const perfetto::TracePacket& packet) {
    const TrackEvent& event = packet.track_event();
    const auto ns = static_cast<int64_t>(packet.timestamp());
    const auto track = tracks_.find(event.track_uuid());
    if (track == tracks_.end()) return Error("an event without a track");
    const bool counter = event.type() == TrackEvent::TYPE_COUNTER;
    if (counter != track->second.counter) Error("an event of another kind");
    const std::string process = tracks_[track->second.parent].name;
    std::vector<size_t>& open = open_[event.track_uuid()];
    if (counter) {
      read_.counters[process].emplace_back(ns, event.double_counter_value());
    } else if (event.type() == TrackEvent::TYPE_SLICE_BEGIN) {
      if (!open.empty()) Error("slices overlap on a track");
      if (!categories_.count(event.category_iids(0))) Error("no category");
      const size_t slice = read_.slices.size();
      for (uint64_t id : event.flow_ids()) flows_.Touch(id, slice);
      for (uint64_t id : event.terminating_flow_ids()) flows_.End(id, slice);
      open.push_back(slice);
      read_.slices.push_back(
          {process, track->second.name, event.name(), ns, ns});
    } else if (event.type() == TrackEvent::TYPE_SLICE_END) {
      if (open.empty()) return Error("an end without a start");
      read_.slices[open.back()].end_ns = ns;
      open.pop_back();
    } else {
      Error("an event of no type");
    }
  }

  ReadTrace read_;
  Flows flows_{&read_};
  std::map<uint64_t, Track> tracks_;
  std::map<uint64_t, std::vector<size_t>> open_;
  std::set<uint64_t> categories_;
};

int64_t Nanoseconds(const Json& microseconds) {
  return std::llround(microseconds.get<double>() * 1000);
}

}  // namespace

size_t ReadTrace::NumCounterValues() const {
  size_t num = 0;
  for (const auto& [process, values] : counters) num += values.size();
  return num;
}

double ReadTrace::SumSeconds() const {
  double sum = 0;
  for (const ReadSlice& slice : slices) {
    sum += static_cast<double>(slice.end_ns - slice.start_ns) * 1e-9;
  }
  return sum;
}

std::string ReadTrace::DescribeFlow(uint64_t id) const {
  std::string text;
  for (size_t slice : flows.at(id)) {
    absl::StrAppend(&text, text.empty() ? "" : " > ", slices[slice].name);
  }
  return text;
}

ReadTrace ReadPerfetto(absl::string_view bytes) {
  return PerfettoReader().Read(bytes);
}

ReadTrace ReadChrome(absl::string_view text) {
  ReadTrace read;
  Flows flows(&read);
  const Json json = Json::parse(text.begin(), text.end(), nullptr, false);
  if (!json.is_object() || json["displayTimeUnit"] != "ms") {
    read.errors.push_back("not a trace");
    return read;
  }
  std::map<int, std::string> processes;
  std::map<std::pair<int, int>, std::string> threads;
  std::map<std::pair<int, int>, size_t> last;
  for (const Json& event : json["traceEvents"]) {
    const std::string phase = event["ph"];
    const int pid = event["pid"];
    const std::pair<int, int> thread = {pid, event.value("tid", 0)};
    if (phase == "M") {
      if (event["name"] == "process_name") {
        processes[pid] = event["args"]["name"];
        read.processes.push_back(processes[pid]);
      } else if (event["name"] == "thread_name") {
        threads[thread] = event["args"]["name"];
      }
    } else if (phase == "C") {
      read.counters[processes.at(pid)].emplace_back(
          Nanoseconds(event["ts"]), event["args"]["bytes"].get<double>());
    } else if (phase == "X") {
      const int64_t start = Nanoseconds(event["ts"]);
      if (last.count(thread) && read.slices[last[thread]].end_ns > start) {
        read.errors.push_back("slices overlap on a track");
      }
      last[thread] = read.slices.size();
      read.slices.push_back({processes.at(pid), threads.at(thread),
                             event["name"], start,
                             start + Nanoseconds(event["dur"])});
    } else {
      const uint64_t id = event["id"];
      const size_t slice = last.at(thread);
      if (Nanoseconds(event["ts"]) != read.slices[slice].start_ns) {
        read.errors.push_back("a flow point outside its slice");
      }
      if (phase == "s" && read.flows.count(id)) {
        read.errors.push_back("a flow begins twice");
      }
      phase == "f" ? flows.End(id, slice) : flows.Touch(id, slice);
    }
  }
  flows.Finish();
  return read;
}

}  // namespace weir::results
