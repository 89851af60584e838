// SPDX-License-Identifier: Apache-2.0
// Refuses requests that need more memory or time than this machine has, before
// anything is built. Code that is about to build n of something estimates their
// size and calls CheckSize first:
//
//   RETURN_IF_ERROR(CheckSize(label, "1e+09 actions",
//                             {n * kBytesPerAction, n * kSecondsPerAction},
//                             "fewer microbatches"));
//
// Constants are rounded up from measurements by tests/bench/scaling_bench.cc.
#ifndef WEIR_BASE_SIZE_LIMITS_H_
#define WEIR_BASE_SIZE_LIMITS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weir {

// Estimates the peak memory of a request and its time on one core.
struct SizeEstimate {
  double bytes = 0;
  double seconds = 0;

  // Adds two requests that run one after the other and both stay in memory.
  SizeEstimate operator+(const SizeEstimate& other) const {
    return {bytes + other.bytes, seconds + other.seconds};
  }
};

struct SizeLimits {
  double bytes = 0;
  double seconds = 0;
};

// Estimates below this are always accepted, whatever memory the machine has
// left, so that small requests behave the same everywhere.
inline constexpr double kAlwaysFitsBytes = 256.0 * (1 << 20);

// The highest limits on a machine of any size.
inline constexpr double kMaxRequestBytes = 1e12;
inline constexpr double kMaxRequestSeconds = 3600;

// Environment variables that replace the limits, in bytes and seconds.
inline constexpr char kMaxBytesVariable[] = "WEIR_MAX_BYTES";
inline constexpr char kMaxSecondsVariable[] = "WEIR_MAX_SECONDS";

// Returns the limits in force: those of the environment, else what this machine
// has available, at most the highest. Returns InvalidArgument if a variable is
// not a number above 0.
absl::StatusOr<SizeLimits> CurrentSizeLimits();

// Returns "is too large: ..." if the estimate exceeds a limit, with `counted`,
// the estimate, the limits and `advice` on what to change. Else returns "".
std::string SizeProblem(absl::string_view counted, const SizeEstimate& estimate,
                        absl::string_view advice);

// Returns InvalidArgument with the label and SizeProblem, if there is one.
absl::Status CheckSize(absl::string_view label, absl::string_view counted,
                       const SizeEstimate& estimate, absl::string_view advice);

// Overrides the limits while it exists, for tests.
class ScopedSizeLimits {
 public:
  explicit ScopedSizeLimits(const SizeLimits& limits);
  ~ScopedSizeLimits();
  ScopedSizeLimits(const ScopedSizeLimits&) = delete;
  ScopedSizeLimits& operator=(const ScopedSizeLimits&) = delete;
};

}  // namespace weir

#endif  // WEIR_BASE_SIZE_LIMITS_H_
