// SPDX-License-Identifier: Apache-2.0
// What a joint search starts from: the papers' planners, asked for each
// tensor-parallel and microbatch size of the request.
#ifndef WEIR_PLAN_PAPERS_SEEDS_H_
#define WEIR_PLAN_PAPERS_SEEDS_H_

#include <functional>
#include <string>
#include <vector>

#include "plan/plan.pb.h"

namespace weir {

// Plans that weir can say and the request allows, neither simulated nor checked
// for memory; the same for any number of processes. A planner of
// inference is not asked, nor one whose schedule has no flush unless the
// request has such; beyond 5,000 devices x layers that at the scenario's
// microbatch size alone. None for a request that SearchPlans refuses.
// `progress` is told the part of the questions that is answered.
std::vector<Plan> SeedsFor(const std::string& label, const PlanRequest& request,
                           int num_processes,
                           const std::function<void(double)>& progress = {});

}  // namespace weir

#endif  // WEIR_PLAN_PAPERS_SEEDS_H_
