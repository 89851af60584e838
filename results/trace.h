// SPDX-License-Identifier: Apache-2.0
// A result's timeline in the trace formats that viewers open.
#ifndef WEIR_RESULTS_TRACE_H_
#define WEIR_RESULTS_TRACE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "results/result.pb.h"

namespace weir {

// Perfetto protobuf (.pftrace): a process per GPU, tracks for compute, sends,
// receives and collectives, a counter for memory in use, one flow per transfer
// from the slice that produced it over its send to the one that consumes it.
// FailedPrecondition when the result has no timeline, InvalidArgument when it
// is not a valid one (results/validate.h) or ends after 9e9 s.
absl::StatusOr<std::string> PerfettoTrace(const Result& result);

// Chrome's JSON array format, with the same slices, flows and counters.
absl::StatusOr<std::string> ChromeTrace(const Result& result);

}  // namespace weir

#endif  // WEIR_RESULTS_TRACE_H_
