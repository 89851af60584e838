// SPDX-License-Identifier: Apache-2.0
// What rows of actions say about the schedule that they are of.
#ifndef WEIR_SCHEDULES_INFER_H_
#define WEIR_SCHEDULES_INFER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "schedules/schedule.h"

namespace weir {

struct Inferred {
  // As ScheduleFromRows, whatever the rows hold: a microbatch of a stage is on
  // the rank that runs it first, -1 where nobody does.
  Schedule schedule;
  std::vector<std::string> problems;  // what ScheduleFromRows refuses
};

// InvalidArgument when the actions cannot fill the stages and microbatches that
// they name: "99999999F0" is ten bytes.
absl::StatusOr<Inferred> InferSchedule(
    absl::string_view name, std::vector<std::vector<Action>> rank_actions);

}  // namespace weir

#endif  // WEIR_SCHEDULES_INFER_H_
