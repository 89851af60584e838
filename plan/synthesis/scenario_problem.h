// SPDX-License-Identifier: Apache-2.0
// A scenario as a problem of orders.
#ifndef WEIR_PLAN_SYNTHESIS_SCENARIO_PROBLEM_H_
#define WEIR_PLAN_SYNTHESIS_SCENARIO_PROBLEM_H_

#include "absl/status/statusor.h"
#include "plan/synthesis/order_problem.h"
#include "scenarios/scenario.h"

namespace weir {

// Shape, seconds and bytes of the stages, and the slowest hop, as an automatic
// schedule is told of them; without limit. Errors as Simulate's.
absl::StatusOr<OrderProblem> OrderProblemOf(const ResolvedScenario& scenario);

}  // namespace weir

#endif  // WEIR_PLAN_SYNTHESIS_SCENARIO_PROBLEM_H_
