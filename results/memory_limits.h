// SPDX-License-Identifier: Apache-2.0
// The interval of a predicted peak memory, and whether a run fits.
#ifndef WEIR_RESULTS_MEMORY_LIMITS_H_
#define WEIR_RESULTS_MEMORY_LIMITS_H_

#include "results/result.pb.h"

namespace weir::results {

// Distances of the ends of the interval of nine cases of ten.
struct MemoryLimits {
  double less_bytes = 0, more_bytes = 0;
};
MemoryLimits LimitsOf(const MemoryUncertainty& uncertainty);
// The same for tensors alone, without context, libraries and what an allocator
// holds beyond them.
MemoryLimits AllocatedLimitsOf(const MemoryUncertainty& uncertainty);

enum class FitVerdict {
  kFits,       // also the upper end of the interval, or nothing limits it
  kMayNotFit,  // the prediction fits, the upper end of its interval does not
  kMayFit,     // the prediction does not fit, the lower end does
  kDoesNotFit,
};
FitVerdict VerdictOf(const Result& result);
const char* NameOf(FitVerdict verdict);  // "may not fit"

}  // namespace weir::results

#endif  // WEIR_RESULTS_MEMORY_LIMITS_H_
