// SPDX-License-Identifier: Apache-2.0
// Chrome's JSON: a process per GPU, a thread per track, times in microseconds.
// All strings consist of constants and numbers, so none needs escaping.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "results/trace/trace.h"
#include "results/trace/trace_events.h"

namespace weir::results {
namespace {

// Appends microseconds with three decimals, so that nanoseconds are exact.
void AppendMicroseconds(int64_t ns, std::string* out) {
  const int64_t rest = ns % 1000;
  absl::StrAppend(out, ns / 1000,
                  rest < 10    ? ".00"
                  : rest < 100 ? ".0"
                               : ".",
                  rest);
}

class ChromeWriter {
 public:
  ChromeWriter(const Result& result, absl::Span<const std::string> names,
               const TraceEvents& events, std::string* out)
      : result_(result), names_(names), events_(events), out_(out) {}

  void WriteAll() {
    absl::StrAppend(out_, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
    WriteNames();
    for (size_t i = 0; i < events_.slices.size(); ++i) WriteSlice(i);
    WriteMemory();
    absl::StrAppend(out_, "\n]}\n");
  }

 private:
  void Open(absl::string_view phase, uint32_t gpu) {
    absl::StrAppend(out_, first_ ? "\n" : ",\n", "{\"ph\":\"", phase,
                    "\",\"pid\":", gpu + 1);
    first_ = false;
  }

  void WriteMetadata(absl::string_view what, uint32_t gpu, int64_t tid,
                     absl::string_view argument) {
    Open("M", gpu);
    if (tid > 0) absl::StrAppend(out_, ",\"tid\":", tid);
    absl::StrAppend(out_, ",\"name\":\"", what, "\",\"args\":{", argument,
                    "}}");
  }

  void WriteNames() {
    for (int i = 0; i < result_.ranks_size(); ++i) {
      const auto gpu = static_cast<uint32_t>(i);
      WriteMetadata("process_name", gpu, 0,
                    absl::StrCat("\"name\":\"", names_[gpu], "\""));
      WriteMetadata("process_sort_index", gpu, 0,
                    absl::StrCat("\"sort_index\":", i));
    }
    for (uint32_t i = 0; i < events_.tracks.size(); ++i) {
      const TraceTrack& track = events_.tracks[i];
      WriteMetadata("thread_name", track.gpu, Tid(i),
                    absl::StrCat("\"name\":\"", LaneName(track.lane), "\""));
      WriteMetadata(
          "thread_sort_index", track.gpu, Tid(i),
          absl::StrCat("\"sort_index\":", static_cast<int>(track.lane)));
    }
  }

  static int64_t Tid(uint32_t track) { return int64_t{track} + 1; }

  void AppendPlace(const TraceSlice& slice) {
    absl::StrAppend(out_, ",\"tid\":", Tid(slice.track), ",\"ts\":");
    AppendMicroseconds(slice.start_ns, out_);
  }

  void WriteSlice(size_t i) {
    const TraceSlice& slice = events_.slices[i];
    const TraceTrack& track = events_.tracks[slice.track];
    Open("X", track.gpu);
    AppendPlace(slice);
    absl::StrAppend(out_, ",\"dur\":");
    AppendMicroseconds(slice.end_ns - slice.start_ns, out_);
    absl::StrAppend(out_, ",\"cat\":\"", LaneCategory(track.lane),
                    "\",\"name\":\"");
    AppendSliceName(result_, events_, slice, out_);
    absl::StrAppend(out_, "\"");
    const double bytes = SliceBytes(result_, events_, slice);
    if (bytes >= 0) {
      absl::StrAppend(out_, ",\"args\":{\"bytes\":", ShortestNumber(bytes),
                      "}");
    }
    absl::StrAppend(out_, "}");
    for (const FlowPoint& point : events_.FlowPointsOf(i)) {
      WriteFlowPoint(slice, track.gpu, point);
    }
  }

  // A flow point binds to the slice that contains it, so it is put at the
  // slice's start.
  void WriteFlowPoint(const TraceSlice& slice, uint32_t gpu,
                      const FlowPoint& point) {
    using Step = FlowPoint::Step;
    Open(point.step == Step::kBegin ? "s"
         : point.step == Step::kEnd ? "f"
                                    : "t",
         gpu);
    AppendPlace(slice);
    absl::StrAppend(out_, ",\"id\":", int64_t{point.transfer} + 1,
                    point.step == Step::kEnd ? ",\"bp\":\"e\"" : "",
                    ",\"cat\":\"transfer\",\"name\":\"transfer\"}");
  }

  void WriteMemory() {
    const auto& memory = result_.timeline().memory();
    for (int i = 0; i < memory.gpu_size(); ++i) {
      Open("C", memory.gpu(i));
      absl::StrAppend(out_, ",\"ts\":");
      AppendMicroseconds(ToNanoseconds(memory.seconds(i)), out_);
      absl::StrAppend(out_, ",\"name\":\"memory\",\"args\":{\"bytes\":",
                      ShortestNumber(memory.bytes(i)), "}}");
    }
  }

  const Result& result_;
  const absl::Span<const std::string> names_;
  const TraceEvents& events_;
  std::string* out_;
  bool first_ = true;
};

}  // namespace

absl::StatusOr<std::string> ChromeTrace(const Result& result,
                                        absl::Span<const std::string> names) {
  ASSIGN_OR_RETURN(const TraceEvents events, LayOutTrace(result));
  std::vector<std::string> gpu_names;
  if (names.empty()) {
    gpu_names = GpuNames(result);
    names = gpu_names;
  }
  std::string trace;
  trace.reserve(events.slices.size() * 180 + events.flow_points.size() * 100 +
                100 *
                    static_cast<size_t>(result.timeline().memory().gpu_size()));
  ChromeWriter(result, names, events, &trace).WriteAll();
  return trace;
}

}  // namespace weir::results
