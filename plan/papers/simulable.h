// SPDX-License-Identifier: Apache-2.0
// Restricts planners to what weir can simulate: all stages have the same number
// of replicas, all or none recompute, and nothing is swapped. Uses weir's
// costs. Functions return InvalidArgument for malformed input and given costs,
// NotFound if nothing fits.
#ifndef WEIR_PLAN_PAPERS_SIMULABLE_H_
#define WEIR_PLAN_PAPERS_SIMULABLE_H_

#include "absl/status/statusor.h"
#include "plan/papers/accept.h"
#include "plan/papers/planner_work.h"
#include "plan/papers/shared_facts.h"

namespace weir::plan {

// Return the planner's own choice if its stages are equally replicated; else
// its best plan with equal replication, with the other's objective in a note.
// Beyond kMostForUnlike devices x layers, only equal replication is tried,
// which takes a fraction of the time; a note says so.
inline constexpr int kMostForUnlike = 8000;
absl::StatusOr<PlannedPipeline> SimulableDapple(const PlannerWork& work);
// `order` is RDO's; if empty, it is computed and set.
absl::StatusOr<PlannedPipeline> SimulableSpp(const PlannerWork& work,
                                             std::vector<int>* order);

// Plans without recomputation and, if nothing fits, with full recomputation,
// for every number of stages that divides the devices. Returns the plan with
// the shortest time in 1F1B, (m / replicas + stages - 1) slowest stages,
// without all-reduces.
absl::StatusOr<PlannedPipeline> SimulableDawnPiper(
    const scenarios::ResolvedScenario& given, const PlannerLinks& links);

// Returns the cost of transfers in weir's schedule "accept": bits per element
// as in the scenario, and the codec time of the layer with the largest output.
absl::StatusOr<AcceptOptions> AcceptOptionsOf(
    const scenarios::ResolvedScenario& given);
absl::StatusOr<PlannedPipeline> SimulableAccept(
    const scenarios::ResolvedScenario& given, const PlannerLinks& links);

}  // namespace weir::plan

#endif  // WEIR_PLAN_PAPERS_SIMULABLE_H_
