// SPDX-License-Identifier: Apache-2.0
// The shapes that a request allows.
#ifndef WEIR_PLAN_SEARCH_LIST_SHAPES_H_
#define WEIR_PLAN_SEARCH_LIST_SHAPES_H_

#include <vector>

#include "plan/search/plan.pb.h"
#include "plan/search/space.h"
#include "scenarios/scenario.h"

namespace weir::plan {

// Returns the shapes that the lists of the request allow on the scenario, or
// usual values for those that are empty. Not all are legal. `base`: the
// scenario resolved for one GPU. Consecutive shapes differ as little as
// possible.
std::vector<Shape> ListShapes(const PlanRequest& request,
                              const scenarios::ResolvedScenario& base);

// Returns the fewest pipeline ranks that may run several chunks each.
int MinRanksOf(const PlanSpace& space, const scenarios::ResolvedScenario& base);

}  // namespace weir::plan

#endif  // WEIR_PLAN_SEARCH_LIST_SHAPES_H_
