// SPDX-License-Identifier: Apache-2.0
// A report of plans as people and programs read it.
#ifndef WEIR_PLAN_VIEWS_H_
#define WEIR_PLAN_VIEWS_H_

#include <string>

#include "plan/plan.pb.h"

namespace weir {

// One row per plan, best first, and a line of counts. `explain`: under it, why
// each further plan lost.
std::string PlanTable(const PlanReport& report, bool explain);

// The same as an object: "plans", "counts", "lower_bound_seconds". Scenarios
// are textproto.
std::string PlanJson(const PlanReport& report);

// One line per plan, with a header line.
std::string PlanCsv(const PlanReport& report);

// "300 candidates: 120 illegal, ...".
std::string CountsText(const PlanReport& report);

// What was asked, as an object.
std::string PlanRequestJson(const PlanRequest& request);

}  // namespace weir

#endif  // WEIR_PLAN_VIEWS_H_
