// SPDX-License-Identifier: Apache-2.0
// Explanations, with numbers, of why a plan is not the best.
#ifndef WEIR_PLAN_SEARCH_EXPLAIN_PLAN_H_
#define WEIR_PLAN_SEARCH_EXPLAIN_PLAN_H_

#include <string>

#include "plan/search/confirm.h"

namespace weir::plan {

// Returns for example "5.2 % slower (1.20 s, best 1.14 s): bubble +61.0 ms,
// tensor collectives +12.0 ms, compute -13.0 ms", the differences on the
// busiest GPU, largest first; also differences in memory and in the number of
// GPUs. For OBJECTIVE_MEMORY, memory comes first.
std::string WhyNotBest(Objective objective, const Confirmed& best,
                       const Confirmed& plan);

// Returns in a few words how much slower or faster `plan` is, and the parts of
// the step that differ most: "6.4 % slower: bubble +1.20 s".
std::string ShortDifference(const Confirmed& best, const Confirmed& plan);

}  // namespace weir::plan

#endif  // WEIR_PLAN_SEARCH_EXPLAIN_PLAN_H_
