// SPDX-License-Identifier: Apache-2.0
// Refuses requests that need more memory or time than this machine has, before
// anything is built. Code that is about to build a large number of objects
// estimates their size and calls CheckSize first:
//
//   RETURN_IF_ERROR(CheckSize(label, "1e+09 actions",
//                             {n * kBytesPerAction, n * kSecondsPerAction},
//                             "fewer microbatches"));
//
// The constants are rounded up from measurements by
// tests/bench/scaling_bench.cc.
#ifndef WEIR_BASE_SIZE_LIMITS_H_
#define WEIR_BASE_SIZE_LIMITS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weir {

// An estimate of the peak memory of a request and its time on one core.
struct SizeEstimate {
  double bytes = 0;
  double seconds = 0;

  // Returns the estimate for two requests that run one after the other and both
  // stay in memory.
  SizeEstimate operator+(const SizeEstimate& other) const {
    return {bytes + other.bytes, seconds + other.seconds};
  }
};

struct SizeLimits {
  double bytes = 0;
  double seconds = 0;
};

// Smaller estimates are always accepted, regardless of the memory available, so
// that small requests behave the same on every machine.
inline constexpr double kAlwaysFitsBytes = 256.0 * (1 << 20);

// The highest limits on a machine of any size.
inline constexpr double kMaxRequestBytes = 1e12;
inline constexpr double kMaxRequestSeconds = 3600;

// Environment variables that replace the limits, in bytes and seconds.
inline constexpr char kMaxBytesVariable[] = "WEIR_MAX_BYTES";
inline constexpr char kMaxSecondsVariable[] = "WEIR_MAX_SECONDS";

// Returns the limits in force: those of the environment, else the resources
// that this machine has available, up to the highest limits. Returns
// InvalidArgument if a variable is not a number above 0.
absl::StatusOr<SizeLimits> CurrentSizeLimits();

// Returns "is too large: ..." if the estimate exceeds a limit, with `counted`,
// the estimate, the limits and `advice` on what to change. Otherwise returns
// "".
std::string SizeProblem(absl::string_view counted, const SizeEstimate& estimate,
                        absl::string_view advice);

// Returns InvalidArgument with the label and the SizeProblem, if there is one.
absl::Status CheckSize(absl::string_view label, absl::string_view counted,
                       const SizeEstimate& estimate, absl::string_view advice);

// Overrides the limits during its lifetime, for tests.
class ScopedSizeLimits {
 public:
  explicit ScopedSizeLimits(const SizeLimits& limits);
  ~ScopedSizeLimits();
  ScopedSizeLimits(const ScopedSizeLimits&) = delete;
  ScopedSizeLimits& operator=(const ScopedSizeLimits&) = delete;
};

}  // namespace weir

#endif  // WEIR_BASE_SIZE_LIMITS_H_
