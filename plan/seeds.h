// SPDX-License-Identifier: Apache-2.0
// Plans that a search starts from.
#ifndef WEIR_PLAN_SEEDS_H_
#define WEIR_PLAN_SEEDS_H_

#include <vector>

#include "plan/plan.pb.h"
#include "plan/search_work.pb.h"
#include "plan/space.h"

namespace weir {

struct Seed {
  Plan plan;
  // The same candidate of the space: of space.shapes, and of its schedules.
  int shape = -1;  // -1: it is not in the space
  int schedule = 0;
};

// A seed says how; what is asked stays. Each once. `shapes` are of
// space.shapes, their cuts among them.
std::vector<Seed> SeedsOn(const Space& space,
                          const std::vector<SearchFigures>& shapes,
                          const std::vector<Plan>& given);

}  // namespace weir

#endif  // WEIR_PLAN_SEEDS_H_
