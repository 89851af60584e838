// SPDX-License-Identifier: Apache-2.0
// The candidate schedules of a search, with their options.
#ifndef WEIR_PLAN_SEARCH_SCHEDULE_VARIANTS_H_
#define WEIR_PLAN_SEARCH_SCHEDULE_VARIANTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "calibrate/profile/runtime.pb.h"
#include "plan/search/plan.pb.h"
#include "plan/search/space.h"
#include "schedules/schedule.h"

namespace weir::plan {

// Returns the candidate schedules of pipelines with `num_ranks` ranks: those
// that the request names; else, in the order of the registry, those that train
// as one GPU would (with a flush and without lossy transfers), restricted to
// what the runtime executes unless the request sets any_runtime; and those
// without a flush if it sets asynchronous. A name without options represents
// all of its options that change time or memory but not the training: memory
// limits, orders of backward passes, numbers of pipelines. Returns NotFound for
// an unknown name.
absl::StatusOr<std::vector<PlannedSchedule>> SchedulesToPlan(
    const std::string& label, const PlanSpace& space, int num_ranks,
    const Runtime& runtime = {});

// Returns true if the schedule supports the shape, on the scenario's runtime.
bool IsLegal(const PlannedSchedule& schedule, const Shape& shape,
             int num_microbatches);

// Returns the bound key of a schedule: the placement of its stages, the routes
// of its microbatches, and the kinds of passes, transfers and updates that it
// has. See PlannedSchedule.
std::string BoundKey(const schedules::Schedule& schedule);

}  // namespace weir::plan

#endif  // WEIR_PLAN_SEARCH_SCHEDULE_VARIANTS_H_
