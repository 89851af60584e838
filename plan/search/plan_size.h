// SPDX-License-Identifier: Apache-2.0
// Estimates of the memory and time of a joint search (base/size_limits.h).
#ifndef WEIR_PLAN_SEARCH_PLAN_SIZE_H_
#define WEIR_PLAN_SEARCH_PLAN_SIZE_H_

#include <string>

#include "absl/status/status.h"
#include "base/size_limits.h"
#include "plan/search/plan.pb.h"
#include "plan/search/space.h"

namespace weir::plan {

// Estimates the bounds of all candidates, and ranked and full runs of typical
// candidates in typical numbers, in `num_processes` processes.
SizeEstimate EstimateSearch(const Space& space, int num_processes);

// Returns InvalidArgument if the search is too large, and errors of MakeSpace.
absl::Status CheckSearchSize(const std::string& label,
                             const PlanRequest& request, int num_processes);

}  // namespace weir::plan

#endif  // WEIR_PLAN_SEARCH_PLAN_SIZE_H_
