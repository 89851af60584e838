// SPDX-License-Identifier: Apache-2.0
// Conditions that a result must meet before a view may trust it. The
// simulator's own results meet them; a file from elsewhere may not. Errors are
// InvalidArgument with all problems found.
#ifndef WEIR_RESULTS_VALIDATE_H_
#define WEIR_RESULTS_VALIDATE_H_

#include <google/protobuf/message.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "results/result.pb.h"

namespace weir::results {

// Checks that a result names its schedule, that all its quantities are finite
// (except for the losses of a replay), that a replay has one peak per rank, and
// that the timeline is valid (see below). Returns all problems at once.
absl::Status ValidateResult(absl::string_view label, const Result& result);

// Checks the timeline, copies to and from the host and shared links: that all
// columns of a kind of event have the same length, that GPUs
// are indices into ranks, that times and bytes are finite and not negative,
// that no event ends before it starts, and that enumerations and spans are in
// range.
absl::Status ValidateTimeline(absl::string_view label, const Result& result);

// Returns a copy without them, which may be much larger than the rest.
Result WithoutTimeline(const Result& result);

// Returns the JSON pointers ("/ranks/3/idle_seconds") of all numbers that are
// NaN or infinite, except those that ValidateTimeline checks.
std::vector<std::string> NonFinitePointers(const Result& result);

}  // namespace weir::results

#endif  // WEIR_RESULTS_VALIDATE_H_
