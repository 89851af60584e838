// SPDX-License-Identifier: Apache-2.0
// Estimates of the memory and time of a synthesis (base/size_limits.h).
#ifndef WEIR_PLAN_SYNTHESIS_SYNTHESIS_SIZE_H_
#define WEIR_PLAN_SYNTHESIS_SYNTHESIS_SIZE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/size_limits.h"
#include "plan/synthesis/order_problem.h"
#include "plan/synthesis/synthesize.h"

namespace weir::plan {

// Number of local searches from each starting order.
inline constexpr int kRunsOfStart = 2;

// Returns the number of forwards and of both halves of backwards.
double NumPasses(const OrderProblem& problem);

// Returns options.num_moves, or by default fewer for more passes.
int64_t NumMoves(const OrderProblem& problem, const SynthesisOptions& options);

// Estimates the time and memory of the named orders, the bounds and the local
// search, on one core. The mixed-integer program is not included:
// options.seconds limits it.
SizeEstimate EstimateSynthesis(const OrderProblem& problem,
                               const SynthesisOptions& options);

// Returns InvalidArgument if the estimate is too large.
absl::Status CheckSynthesisSize(absl::string_view label,
                                const OrderProblem& problem,
                                const SynthesisOptions& options);

}  // namespace weir::plan

#endif  // WEIR_PLAN_SYNTHESIS_SYNTHESIS_SIZE_H_
