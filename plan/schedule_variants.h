// SPDX-License-Identifier: Apache-2.0
// Which schedules are worth looking at, with which options.
#ifndef WEIR_PLAN_SCHEDULE_VARIANTS_H_
#define WEIR_PLAN_SCHEDULE_VARIANTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "calibrate/runtime.pb.h"
#include "plan/plan.pb.h"
#include "plan/space.h"
#include "schedules/schedule.h"

namespace weir {

// Of pipelines with so many ranks, in the order of the registry. Those that the
// request names; else all that train as one GPU would: with a flush and nothing
// lossy between the ranks, of these only what the runtime executes unless the
// request says any_runtime; and those without a flush if it says asynchronous.
// A name without options stands for all of its options that change time or
// memory and not the training: memory limits, orders of backwards, numbers of
// pipelines. NotFound for a name that nothing has.
absl::StatusOr<std::vector<PlannedSchedule>> SchedulesToPlan(
    const std::string& label, const PlanSpace& space, int num_ranks,
    const Runtime& runtime = {});

// Who has which stage, who takes which microbatch, and what passes, transfers
// and steps are made of: see PlannedSchedule.
std::string PlacesOf(const Schedule& schedule);

}  // namespace weir

#endif  // WEIR_PLAN_SCHEDULE_VARIANTS_H_
