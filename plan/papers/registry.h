// SPDX-License-Identifier: Apache-2.0
// The registry of the papers' planners.
#ifndef WEIR_PLAN_PAPERS_REGISTRY_H_
#define WEIR_PLAN_PAPERS_REGISTRY_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "plan/papers/planner_work.h"
#include "plan/papers/shared_facts.h"

namespace weir::plan {

struct PaperPlanner {
  absl::string_view name;   // "dapple"
  absl::string_view paper;  // authors, title, venue
  absl::string_view summary;
  // Plans a scenario, which may be priced otherwise than given (other
  // microbatch sizes, no recomputation). `given` is also the argument for
  // ScenarioOf. Returns InvalidArgument if the planner does not support the
  // scenario, NotFound if nothing fits. `facts` are those of this scenario, or
  // of one that shares them.
  std::function<absl::StatusOr<PlannedPipeline>(
      const scenarios::ResolvedScenario& given, SharedFacts* facts)>
      plan;
};

const std::vector<PaperPlanner>& PaperPlanners();

// Returns InvalidArgument with all names if there is no such planner.
absl::StatusOr<const PaperPlanner*> FindPaperPlanner(absl::string_view name);

}  // namespace weir::plan

#endif  // WEIR_PLAN_PAPERS_REGISTRY_H_
