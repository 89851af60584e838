// SPDX-License-Identifier: Apache-2.0
// What the joint search needs, estimated before it begins
// (base/size_limits.h).
#ifndef WEIR_PLAN_PLAN_SIZE_H_
#define WEIR_PLAN_PLAN_SIZE_H_

#include <string>

#include "absl/status/status.h"
#include "base/size_limits.h"
#include "plan/plan.pb.h"
#include "plan/space.h"

namespace weir {

// Estimates the bounds of all candidates, and typical numbers of ranked and of
// full runs of typical candidates, in so many processes.
SizeEstimate EstimateSearch(const Space& space, int num_processes);

// InvalidArgument where that is too much. Errors as MakeSpace's.
absl::Status CheckSearchSize(const std::string& label,
                             const PlanRequest& request, int num_processes);

}  // namespace weir

#endif  // WEIR_PLAN_PLAN_SIZE_H_
