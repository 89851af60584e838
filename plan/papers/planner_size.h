// SPDX-License-Identifier: Apache-2.0
// Estimates of the memory and time of a paper's planner from the sizes of its
// input, before the input is priced (base/size_limits.h). The planners are
// polynomial; their headers state the orders.
#ifndef WEIR_PLAN_PAPERS_PLANNER_SIZE_H_
#define WEIR_PLAN_PAPERS_PLANNER_SIZE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/size_limits.h"
#include "scenarios/scenario.h"

namespace weir::plan {

struct PlannerSize {
  double num_layers = 1;
  double num_devices = 1;  // tensor-parallel groups
  double num_microbatches = 1;
};

// Returns the sizes of the planner's input for this scenario.
PlannerSize PlannerSizeOf(const scenarios::ResolvedScenario& given);

// Estimates the worst case, without pruning, of `planner`, a registry name.
SizeEstimate EstimatePlanner(absl::string_view planner,
                             const PlannerSize& size);

// Returns InvalidArgument if the estimate is too large.
absl::Status CheckPlannerSize(absl::string_view planner,
                              const scenarios::ResolvedScenario& given);

}  // namespace weir::plan

#endif  // WEIR_PLAN_PAPERS_PLANNER_SIZE_H_
