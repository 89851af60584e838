// SPDX-License-Identifier: Apache-2.0
// The papers' planners by name.
#ifndef WEIR_PLAN_PAPERS_REGISTRY_H_
#define WEIR_PLAN_PAPERS_REGISTRY_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "plan/papers/shared_facts.h"
#include "plan/planner_work.h"

namespace weir {

struct PaperPlanner {
  absl::string_view name;   // "dapple"
  absl::string_view paper;  // authors, title, venue
  absl::string_view summary;
  // The scenario is asked of, and may be priced in other ways than as given
  // (other microbatches, no recomputation); `given` stays the one that
  // ScenarioOf takes the plan with. InvalidArgument for what the planner does
  // not handle, NotFound where nothing fits.
  // `facts` are of this scenario, or of one that shares them.
  std::function<absl::StatusOr<PlannedPipeline>(const ResolvedScenario& given,
                                                SharedFacts* facts)>
      plan;
};

const std::vector<PaperPlanner>& PaperPlanners();

// InvalidArgument lists the names.
absl::StatusOr<const PaperPlanner*> FindPaperPlanner(absl::string_view name);

}  // namespace weir

#endif  // WEIR_PLAN_PAPERS_REGISTRY_H_
