// SPDX-License-Identifier: Apache-2.0
// What a joint search starts from: the papers' planners, asked for each
// tensor-parallel size of the request.
#ifndef WEIR_PLAN_PAPERS_SEEDS_H_
#define WEIR_PLAN_PAPERS_SEEDS_H_

#include <string>
#include <vector>

#include "plan/plan.pb.h"

namespace weir {

// Plans that weir can say and the request allows, neither simulated nor checked
// for memory; the same for any number of processes. A planner with too many
// devices and layers for seconds is not asked, nor one of inference, nor one
// whose schedule has no flush unless the request has such. None for a request
// that SearchPlans refuses.
std::vector<Plan> SeedsFor(const std::string& label, const PlanRequest& request,
                           int num_processes);

}  // namespace weir

#endif  // WEIR_PLAN_PAPERS_SEEDS_H_
