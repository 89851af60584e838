// SPDX-License-Identifier: Apache-2.0
// What must hold for any schedule before anything else looks at it.
#ifndef WEIR_SCHEDULES_VALIDATE_H_
#define WEIR_SCHEDULES_VALIDATE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "schedules/dependencies.h"
#include "schedules/schedule.h"

namespace weir {

struct ScheduleProblem {
  absl::string_view rule;  // shape, placement, order, completeness, size
  Place place;             // of the action; absent for the whole schedule
  std::string message;
};

// All but whether the order can be executed; those of single actions are cut
// after `limit`.
std::vector<ScheduleProblem> FindScheduleProblems(const Schedule& schedule,
                                                  size_t limit);

// Checks that every (stage, microbatch) has one F and one B or one I and W, in
// that order, on the rank that holds the stage, and that the order can be
// executed (FailedPrecondition "deadlock: ..." names the wait cycle). All
// problems come back together.
absl::Status ValidateSchedule(const Schedule& schedule);

}  // namespace weir

#endif  // WEIR_SCHEDULES_VALIDATE_H_
