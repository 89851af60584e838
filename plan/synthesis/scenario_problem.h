// SPDX-License-Identifier: Apache-2.0
// Conversion of a scenario to an order problem.
#ifndef WEIR_PLAN_SYNTHESIS_SCENARIO_PROBLEM_H_
#define WEIR_PLAN_SYNTHESIS_SCENARIO_PROBLEM_H_

#include "absl/status/statusor.h"
#include "plan/synthesis/order_problem.h"
#include "scenarios/scenario.h"

namespace weir::plan {

// Returns the shape, the seconds and bytes of the stages and the slowest hop,
// as automatic schedules receive them; without a limit. Errors are those of
// Simulate.
absl::StatusOr<OrderProblem> OrderProblemOf(
    const scenarios::ResolvedScenario& scenario);

}  // namespace weir::plan

#endif  // WEIR_PLAN_SYNTHESIS_SCENARIO_PROBLEM_H_
