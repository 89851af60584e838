// SPDX-License-Identifier: Apache-2.0
// Validates a schedule. All other uses of a schedule require this.
#ifndef WEIR_SCHEDULES_VALIDATE_H_
#define WEIR_SCHEDULES_VALIDATE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "schedules/dependencies.h"
#include "schedules/schedule.h"

namespace weir::schedules {

struct ScheduleProblem {
  absl::string_view rule;  // shape, placement, order, completeness, size
  Place place;             // absent for the whole schedule
  std::string message;
};

// Returns all problems except deadlocks. Problems of single actions are limited
// to `limit`.
std::vector<ScheduleProblem> FindScheduleProblems(const Schedule& schedule,
                                                  size_t limit);

// Checks that every (stage, microbatch) has one F and either one B or one I and
// one W, in that order, on the rank of the stage, and that the order can be
// executed. Returns InvalidArgument with all problems together, otherwise
// FailedPrecondition "deadlock: ..." with the wait cycle.
absl::Status ValidateSchedule(const Schedule& schedule);

}  // namespace weir::schedules

#endif  // WEIR_SCHEDULES_VALIDATE_H_
