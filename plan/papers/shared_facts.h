// SPDX-License-Identifier: Apache-2.0
// What questions about the same GPUs in the same tensor groups share, whatever
// their microbatches, recomputation or memory: in a large cluster it takes
// longer to find out than any planner does.
#ifndef WEIR_PLAN_PAPERS_SHARED_FACTS_H_
#define WEIR_PLAN_PAPERS_SHARED_FACTS_H_

#include <vector>

#include "plan/planner_work.h"

namespace weir {

struct SharedFacts {
  explicit SharedFacts(const ResolvedScenario& given)
      : links(PlannerLinksOf(given)) {}

  PlannerLinks links;
  std::vector<int> spp_order;  // empty: not asked for yet
};

}  // namespace weir

#endif  // WEIR_PLAN_PAPERS_SHARED_FACTS_H_
