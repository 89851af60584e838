// SPDX-License-Identifier: Apache-2.0
// A first plan that fits, within a second or two.
#ifndef WEIR_PLAN_SEARCH_QUICK_PLAN_H_
#define WEIR_PLAN_SEARCH_QUICK_PLAN_H_

#include <optional>

#include "absl/status/statusor.h"
#include "plan/search/joint_search.h"
#include "plan/search/ranked_plan.h"
#include "plan/search/space.h"

namespace weir::plan {

// Searches the part of the space with the smallest microbatches, one chunk per
// rank, and the first of the other choices that cost nothing; returns the first
// plan that fits `limit_bytes`. Returns std::nullopt if it has none,
// and Cancelled as SearchWorkers does.
absl::StatusOr<std::optional<RankedPlan>> FindQuickPlan(
    const Space& space, Objective objective, double limit_bytes,
    const SearchOptions& options);

}  // namespace weir::plan

#endif  // WEIR_PLAN_SEARCH_QUICK_PLAN_H_
