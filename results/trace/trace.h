// SPDX-License-Identifier: Apache-2.0
// A result's timeline in the formats of trace viewers.
#ifndef WEIR_RESULTS_TRACE_TRACE_H_
#define WEIR_RESULTS_TRACE_TRACE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "results/result.pb.h"

namespace weir::results {

// Returns a Perfetto protobuf (.pftrace): a process per GPU, tracks for
// compute, sends, receives and collectives, a counter for memory in use, and
// one flow per transfer from the slice that produced it over its send to the
// one that consumes it. Returns FailedPrecondition if the result has no
// timeline, InvalidArgument if the timeline is invalid (results/validate.h) or
// ends after 9e9 s. `names`: of the processes, one for each of the result's
// ranks; empty: "rank 0 replica 0 (gpu 0)".
absl::StatusOr<std::string> PerfettoTrace(
    const Result& result, absl::Span<const std::string> names = {});

// Returns Chrome's JSON object format, with the same slices, flows and
// counters. Returns the errors of PerfettoTrace.
absl::StatusOr<std::string> ChromeTrace(
    const Result& result, absl::Span<const std::string> names = {});

// Two results in one timeline, for the functions above: for each rank (replica
// 0, tensor rank 0) the first result's row, and directly under it the second's.
struct TwoRows {
  Result result;
  std::vector<std::string> names;  // "rank 0 predicted", "rank 0 measured"
};
// Returns the errors of PipelineEventsOf, and InvalidArgument if the numbers of
// ranks differ.
absl::StatusOr<TwoRows> PutUnderEachOther(absl::string_view predicted_label,
                                          const Result& predicted,
                                          absl::string_view measured_label,
                                          const Result& measured);

}  // namespace weir::results

#endif  // WEIR_RESULTS_TRACE_TRACE_H_
