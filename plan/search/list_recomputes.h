// SPDX-License-Identifier: Apache-2.0
// The recomputations that a search space allows.
#ifndef WEIR_PLAN_SEARCH_LIST_RECOMPUTES_H_
#define WEIR_PLAN_SEARCH_LIST_RECOMPUTES_H_

#include <vector>

#include "models/recompute.h"
#include "plan/search/plan.pb.h"
#include "scenarios/scenario.h"

namespace weir::plan {

// Returns the recomputations that the space lists, or usual ones if it lists
// none, except for half of the blocks of each stage. `base`: the scenario
// resolved for one GPU.
std::vector<models::Recompute> RecomputesOf(
    const PlanSpace& space, const scenarios::ResolvedScenario& base);

// Returns true if the space lists half of the blocks of each stage.
bool ListsHalfOfStages(const PlanSpace& space);

// Returns full recomputation of the first `n` blocks of each stage.
models::Recompute FirstBlocks(int n);

}  // namespace weir::plan

#endif  // WEIR_PLAN_SEARCH_LIST_RECOMPUTES_H_
