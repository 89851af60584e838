// SPDX-License-Identifier: Apache-2.0
// Detection of schedules that are different names of one order of passes.
#ifndef WEIR_PLAN_SEARCH_SAME_ORDER_H_
#define WEIR_PLAN_SEARCH_SAME_ORDER_H_

#include <string>
#include <vector>

#include "calibrate/profile/runtime.pb.h"
#include "plan/search/space.h"
#include "scenarios/scenario.h"

namespace weir::plan {

// Returns the first of `names` that gives the scenario its present order; the
// scenario's own schedule if none does. Skips schedules that are ordered by
// costs, which are expensive to generate.
std::string FirstNameOfOrder(const scenarios::ResolvedScenario& scenario,
                             const std::vector<PlannedSchedule>& names);

// Returns true if the runtime executes the scenario's order of passes, under
// any name, on as many pipeline ranks. True if the runtime lists no schedules.
bool Executes(const Runtime& runtime,
              const scenarios::ResolvedScenario& scenario);

}  // namespace weir::plan

#endif  // WEIR_PLAN_SEARCH_SAME_ORDER_H_
