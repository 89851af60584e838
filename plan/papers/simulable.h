// SPDX-License-Identifier: Apache-2.0
// What weir can simulate of planners that may plan more: stages of one number
// of replicas, all of them recomputing or none, nothing swapped; and with the
// costs that it has.
#ifndef WEIR_PLAN_PAPERS_SIMULABLE_H_
#define WEIR_PLAN_PAPERS_SIMULABLE_H_

#include "absl/status/statusor.h"
#include "plan/papers/accept.h"
#include "plan/papers/shared_facts.h"
#include "plan/planner_work.h"

namespace weir {

// The planner's own choice where its stages are equally replicated; else its
// best plan with equal ones, and the other's objective in a note. Beyond
// kMostForUnlike devices x layers equal ones alone are looked at, which take a
// fraction of the time; a note says so.
inline constexpr int kMostForUnlike = 8000;
absl::StatusOr<PlannedPipeline> SimulableDapple(const PlannerWork& work);
// `order` is RDO's; empty: it is found, and left there.
absl::StatusOr<PlannedPipeline> SimulableSpp(const PlannerWork& work,
                                             std::vector<int>* order);

// Asked for without recomputation and, where nothing fits, with all of it, for
// every number of stages that divides the devices; that with the least time of
// 1F1B, (m / replicas + stages - 1) slowest stages, without all-reduces.
absl::StatusOr<PlannedPipeline> SimulableDawnPiper(
    const ResolvedScenario& given, const PlannerLinks& links);

// What weir's "accept" makes of transfers: bits per element as the scenario
// says, codecs as long as its device takes for the layer that sends most.
absl::StatusOr<AcceptOptions> AcceptOptionsOf(const ResolvedScenario& given);
absl::StatusOr<PlannedPipeline> SimulableAccept(const ResolvedScenario& given,
                                                const PlannerLinks& links);

}  // namespace weir

#endif  // WEIR_PLAN_PAPERS_SIMULABLE_H_
