// SPDX-License-Identifier: Apache-2.0
// Reads the Trace Event Format of Chrome, which PyTorch's profiler (Kineto),
// Perfetto and many other tools write: an array of events, or an object with
// "traceEvents" (https://docs.google.com/document/d/
// 1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU).
#ifndef WEIR_RESULTS_IMPORT_CHROME_EVENTS_H_
#define WEIR_RESULTS_IMPORT_CHROME_EVENTS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "results/import/trace_source.h"

namespace weir::results {

inline constexpr double kSecondsPerMicrosecond = 1e-6;

// A text, a number, or neither.
struct TraceValue {
  std::string text;
  double number = 0;
  bool is_number = false, is_null = false;
};

// A complete event ("X", or a pair of "B" and "E") or metadata ("M").
struct ChromeEvent {
  std::string name;
  std::string category;
  char phase = 0;  // 'X' or 'M'
  // Numbers are printed without fraction.
  std::string process, thread;
  // On the clock of the trace. Microseconds since 1970 are exact in a double,
  // which seconds are not.
  double start_microseconds = 0, microseconds = 0;
  // Texts and numbers of "args"; nested values are left out.
  std::vector<std::pair<std::string, TraceValue>> arguments;

  // Returns null if there is no such argument.
  const TraceValue* Argument(absl::string_view key) const;
  // Returns the argument as an integer, or `otherwise`.
  int64_t Integer(absl::string_view key, int64_t otherwise) const;
};

// What surrounds the events.
struct ChromeTrace {
  // Texts and numbers next to "traceEvents"; those of nested objects as
  // "distributedInfo.rank".
  std::map<std::string, TraceValue> properties;
  int64_t num_events = 0;  // of all phases
  // The file ends within the events. Every complete event was read.
  bool cut_off = false;
  int64_t num_unpaired = 0;  // "B" or "E" without its other half
};

// Calls `take` with every event, in the order of the file ("B" at its "E").
// Returns InvalidArgument with the position if the text is not JSON, nests
// deeper than kMaxJsonDepth, or has no events, and for events whose times are
// no numbers or beyond kMaxRecordedSeconds; and the first error of `take`.
absl::StatusOr<ChromeTrace> ReadChromeTrace(
    TraceSource* source,
    const std::function<absl::Status(const ChromeEvent&)>& take);

}  // namespace weir::results

#endif  // WEIR_RESULTS_IMPORT_CHROME_EVENTS_H_
