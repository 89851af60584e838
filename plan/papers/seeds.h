// SPDX-License-Identifier: Apache-2.0
// What a joint search starts from: the papers' planners, asked for each
// tensor-parallel size of the request and up to four microbatch sizes.
#ifndef WEIR_PLAN_PAPERS_SEEDS_H_
#define WEIR_PLAN_PAPERS_SEEDS_H_

#include <functional>
#include <string>
#include <vector>

#include "plan/plan.pb.h"

namespace weir {

// Plans that weir can say and the request allows, neither simulated nor checked
// for memory; the same for any number of processes. Not asked are planners
//   - of inference
//   - for every microbatch size, where there are more than four: these are the
//     scenario's own and, from the smallest on, one of each power of two
//   - whose schedule has no flush, unless the request has such; beyond 5,000
//     devices x layers they are asked at the scenario's microbatch size alone
//   - that are estimated to take more than 5 seconds (planner_size.h), as with
//     several hundred layers or more than two thousand devices.
// None for a request that SearchPlans refuses. Calls `progress` about ten times
// a second with the part done. Returns what there is when interrupted.
std::vector<Plan> SeedsFor(const std::string& label, const PlanRequest& request,
                           int num_processes,
                           const std::function<void(double)>& progress = {});

}  // namespace weir

#endif  // WEIR_PLAN_PAPERS_SEEDS_H_
