// SPDX-License-Identifier: Apache-2.0
// Refuses requests that need more memory or time than there is, before
// anything is built. Whoever lists n of something estimates what that takes
// and asks CheckSize first:
//
//   RETURN_IF_ERROR(CheckSize(label, "1e+09 actions",
//                             {n * kBytesPerAction, n * kSecondsPerAction},
//                             "fewer microbatches"));
//
// The constants are rounded up from what tests/bench/scaling_bench.cc measures.
#ifndef WEIR_BASE_SIZE_LIMITS_H_
#define WEIR_BASE_SIZE_LIMITS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weir {

// What a request is estimated to need at its peak, and on one core.
struct SizeEstimate {
  double bytes = 0;
  double seconds = 0;

  // What two need that are there at the same time, one after the other.
  SizeEstimate operator+(const SizeEstimate& other) const {
    return {bytes + other.bytes, seconds + other.seconds};
  }
};

struct SizeLimits {
  double bytes = 0;
  double seconds = 0;
};

// No estimate below this is refused for want of memory, whatever the machine
// says, so that small requests behave alike everywhere.
inline constexpr double kAlwaysFitsBytes = 256.0 * (1 << 20);

// The ceilings on a machine of any size.
inline constexpr double kMaxRequestBytes = 1e12;
inline constexpr double kMaxRequestSeconds = 3600;

// Environment variables that replace the limits, in bytes and seconds.
inline constexpr char kMaxBytesVariable[] = "WEIR_MAX_BYTES";
inline constexpr char kMaxSecondsVariable[] = "WEIR_MAX_SECONDS";

// Returns the limits in force: the environment's, else what this machine has
// available below the ceilings. InvalidArgument for a variable that is no
// number above 0.
absl::StatusOr<SizeLimits> CurrentSizeLimits();

// Returns "is too large: ..." where the estimate exceeds a limit: what was
// counted, the estimate, the limits and `advice`, what to change. Else nothing.
std::string SizeProblem(absl::string_view counted, const SizeEstimate& estimate,
                        absl::string_view advice);

// InvalidArgument with the label and SizeProblem, if any.
absl::Status CheckSize(absl::string_view label, absl::string_view counted,
                       const SizeEstimate& estimate, absl::string_view advice);

// Replaces the limits while it exists, for tests.
class ScopedSizeLimits {
 public:
  explicit ScopedSizeLimits(const SizeLimits& limits);
  ~ScopedSizeLimits();
  ScopedSizeLimits(const ScopedSizeLimits&) = delete;
  ScopedSizeLimits& operator=(const ScopedSizeLimits&) = delete;
};

}  // namespace weir

#endif  // WEIR_BASE_SIZE_LIMITS_H_
