// SPDX-License-Identifier: Apache-2.0
// What must hold for a result before a view may trust it. The simulator's own
// results hold it; a file from elsewhere may not.
#ifndef WEIR_RESULTS_VALIDATE_H_
#define WEIR_RESULTS_VALIDATE_H_

#include <google/protobuf/message.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "results/result.pb.h"

namespace weir {

// Checks that a result names its schedule, that all its quantities are finite
// (but for the losses of a replay), that a replay's peaks are one a rank, and
// that its timeline holds (below). All problems come back together.
absl::Status ValidateResult(absl::string_view label, const Result& result);

// Checks that all columns of a kind of event have one length, that gpus are
// indices into ranks, that times are finite and no event ends before it starts,
// that bytes are finite and not negative, that enumerations and spans are in
// range.
absl::Status ValidateTimeline(absl::string_view label, const Result& result);

// A copy of all but the timeline, which may be larger than all else by far.
Result WithoutTimeline(const Result& result);

// The JSON pointers ("/ranks/3/idle_seconds") of all numbers that are NaN or
// infinite, the timeline's aside.
std::vector<std::string> NonFinitePointers(const Result& result);

}  // namespace weir

#endif  // WEIR_RESULTS_VALIDATE_H_
