// SPDX-License-Identifier: Apache-2.0
// What a paper's planner needs, estimated from the sizes of its question before
// the question is priced (base/size_limits.h). Planners of papers are
// polynomial by definition: their headers state the orders.
#ifndef WEIR_PLAN_PAPERS_PLANNER_SIZE_H_
#define WEIR_PLAN_PAPERS_PLANNER_SIZE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/size_limits.h"
#include "scenarios/scenario.h"

namespace weir {

struct PlannerSize {
  double num_layers = 1;
  double num_devices = 1;  // tensor-parallel groups
  double num_microbatches = 1;
};

// The question that a planner would be asked of this scenario.
PlannerSize PlannerSizeOf(const ResolvedScenario& given);

// Estimates `planner`, a registry name, at its worst: without what it prunes.
SizeEstimate EstimatePlanner(absl::string_view planner,
                             const PlannerSize& size);

// InvalidArgument where that is too much.
absl::Status CheckPlannerSize(absl::string_view planner,
                              const ResolvedScenario& given);

}  // namespace weir

#endif  // WEIR_PLAN_PAPERS_PLANNER_SIZE_H_
