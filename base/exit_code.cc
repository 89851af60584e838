// SPDX-License-Identifier: Apache-2.0
#include "base/exit_code.h"

#include "absl/strings/match.h"
#include "base/interrupt.h"

namespace weir {

ExitCode ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kExitOk;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kResourceExhausted:
      return kExitUsage;
    case absl::StatusCode::kFailedPrecondition:
      return absl::StrContains(status.message(), "deadlock") ? kExitNegative
                                                             : kExitUsage;
    // Another process died or did not answer in time.
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kDeadlineExceeded:
      return kExitNegative;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kUnimplemented:
      return kExitMissing;
    case absl::StatusCode::kCancelled:
      return InterruptExitCode();
    default:
      return kExitInternal;
  }
}

}  // namespace weir
