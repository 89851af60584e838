// SPDX-License-Identifier: Apache-2.0
// Results that planners share for the same GPUs in the same tensor groups. They
// do not depend on microbatches, recomputation or memory, and in a large
// cluster take longer to compute than any plan.
#ifndef WEIR_PLAN_PAPERS_SHARED_FACTS_H_
#define WEIR_PLAN_PAPERS_SHARED_FACTS_H_

#include <vector>

#include "plan/papers/planner_work.h"

namespace weir::plan {

struct SharedFacts {
  explicit SharedFacts(const scenarios::ResolvedScenario& given)
      : links(PlannerLinksOf(given)) {}

  PlannerLinks links;
  std::vector<int> spp_order;  // empty: not computed yet
};

}  // namespace weir::plan

#endif  // WEIR_PLAN_PAPERS_SHARED_FACTS_H_
