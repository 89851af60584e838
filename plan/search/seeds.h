// SPDX-License-Identifier: Apache-2.0
// Seeds: plans from which a search starts.
#ifndef WEIR_PLAN_SEARCH_SEEDS_H_
#define WEIR_PLAN_SEARCH_SEEDS_H_

#include <vector>

#include "plan/search/plan.pb.h"
#include "plan/search/search_work.pb.h"
#include "plan/search/space.h"

namespace weir::plan {

struct Seed {
  Plan plan;
  // The same candidate in the space: indices into space.shapes and its
  // schedules.
  int shape = -1;  // -1: not in the space
  int schedule = 0;
};

// Returns the shape of a scenario with a named order of GPUs. Its cut is kEven
// if its blocks are not given or equal.
Shape ShapeOfScenario(const Scenario& scenario);

// Returns the distinct seeds: `space.base` with the parallelism, training,
// microbatch size and schedule of each given plan. `shapes[i]` is the result of
// the SHAPES job for `space.shapes[i]`, including its cut.
std::vector<Seed> SeedsOn(const Space& space,
                          const std::vector<SearchEstimate>& shapes,
                          const std::vector<Plan>& given);

}  // namespace weir::plan

#endif  // WEIR_PLAN_SEARCH_SEEDS_H_
