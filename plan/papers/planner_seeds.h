// SPDX-License-Identifier: Apache-2.0
// Seeds of a joint search: plans of the papers' planners for each
// tensor-parallel size of the request and up to four microbatch sizes.
#ifndef WEIR_PLAN_PAPERS_PLANNER_SEEDS_H_
#define WEIR_PLAN_PAPERS_PLANNER_SEEDS_H_

#include <functional>
#include <string>
#include <vector>

#include "plan/search/joint_search.h"
#include "plan/search/plan.pb.h"

namespace weir::plan {

// Returns plans that weir can represent and the request allows, neither
// simulated nor checked for memory; the same for any number of processes. Omits
// planners
// - of inference
// - for some microbatch sizes if there are more than four: four remain, the
//   scenario's own and, starting with the smallest, one from each power of two
//   to the next
// - whose schedule has no flush, unless the request includes such schedules;
//   beyond 5,000 devices x layers they only run at the scenario's microbatch
//   size
// - that are estimated to take more than 5 seconds (planner_size.h), as with
//   several hundred layers or more than two thousand devices.
// Returns an empty vector for a request that SearchPlans refuses, and the plans
// found so far when interrupted. Calls `progress` about ten times a second with
// the fraction done.
std::vector<Plan> SeedsFor(const std::string& label, const PlanRequest& request,
                           const SearchOptions& options,
                           const std::function<void(double)>& progress = {});

}  // namespace weir::plan

#endif  // WEIR_PLAN_PAPERS_PLANNER_SEEDS_H_
