// SPDX-License-Identifier: Apache-2.0
#include "results/memory_limits.h"

#include <cmath>

#include "results/summary.h"

namespace weir::results {
namespace {

// A normal variable lies within this many standard deviations of its mean in
// nine cases of ten.
constexpr double kNineOfTen = 1.6448536269514722;

}  // namespace

MemoryLimits AllocatedLimitsOf(const MemoryUncertainty& uncertainty) {
  const double bytes = kNineOfTen * std::hypot(uncertainty.allocated_bytes(),
                                               uncertainty.unrecorded_bytes());
  return {bytes, bytes};
}

MemoryLimits LimitsOf(const MemoryUncertainty& uncertainty) {
  const double both =
      std::hypot(uncertainty.allocated_bytes(), uncertainty.library_bytes(),
                 uncertainty.unrecorded_bytes());
  return {kNineOfTen * std::hypot(both, uncertainty.less_bytes()),
          kNineOfTen * std::hypot(both, uncertainty.more_bytes())};
}

FitVerdict VerdictOf(const Result& result) {
  const double capacity = result.memory_capacity_bytes();
  if (!result.has_memory_capacity_bytes()) return FitVerdict::kFits;
  if (FitsMemory(result)) {
    return result.has_peak_memory_bytes_high() &&
                   result.peak_memory_bytes_high() > capacity
               ? FitVerdict::kMayNotFit
               : FitVerdict::kFits;
  }
  return result.has_peak_memory_bytes_low() &&
                 result.peak_memory_bytes_low() <= capacity
             ? FitVerdict::kMayFit
             : FitVerdict::kDoesNotFit;
}

const char* NameOf(FitVerdict verdict) {
  switch (verdict) {
    case FitVerdict::kFits:
      return "fits";
    case FitVerdict::kMayNotFit:
      return "may not fit";
    case FitVerdict::kMayFit:
      return "may fit";
    case FitVerdict::kDoesNotFit:
      return "does not fit";
  }
  return "";
}

}  // namespace weir::results
