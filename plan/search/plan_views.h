// SPDX-License-Identifier: Apache-2.0
// Views of a plan report: table, JSON and CSV.
#ifndef WEIR_PLAN_SEARCH_PLAN_VIEWS_H_
#define WEIR_PLAN_SEARCH_PLAN_VIEWS_H_

#include <string>

#include "plan/search/plan.pb.h"

namespace weir::plan {

// Returns one row per plan, best first, and a line of counts. `explain` adds
// why each further plan lost.
std::string PlanTable(const PlanReport& report, bool explain);

// Returns an object with "plans", "counts" and "lower_bound_seconds". Scenarios
// are textproto.
std::string PlanJson(const PlanReport& report);

// Returns a plan as in PlanJson, without what depends on the request.
std::string OnePlanJson(const Plan& plan);

// Returns a header line and one line per plan.
std::string PlanCsv(const PlanReport& report);

// Returns for example "300 candidates: 120 invalid, ...".
std::string CountsText(const PlanReport& report);

// Returns the request as an object.
std::string PlanRequestJson(const PlanRequest& request);

}  // namespace weir::plan

#endif  // WEIR_PLAN_SEARCH_PLAN_VIEWS_H_
