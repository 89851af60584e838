// SPDX-License-Identifier: Apache-2.0
// What rows of actions say about the schedule that they are of.
#ifndef WEIR_SCHEDULES_INFER_H_
#define WEIR_SCHEDULES_INFER_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "schedules/dependencies.h"
#include "schedules/schedule.h"
#include "schedules/schedule_text.h"

namespace weir {

struct Inferred {
  // As ScheduleFromRows, whatever the rows hold: a microbatch of a stage is on
  // the rank that runs it first, -1 where nobody does.
  Schedule schedule;
  struct Problem {
    Place place;  // of the pass that shows it, among its rank's passes
    std::string message;
  };
  std::vector<Problem> problems;  // what ScheduleFromRows refuses
};

// Returns what messages call the place of a pass: "a.csv:1:5".
using NamePlace = std::function<std::string(Place)>;

// InvalidArgument when the actions cannot fill the stages and microbatches that
// they name: "99999999F0" is ten bytes.
absl::StatusOr<Inferred> InferSchedule(
    absl::string_view name, std::vector<std::vector<Action>> rank_actions,
    const NamePlace& name_place = nullptr);

// Returns the same of the passes of a file. Errors name lines and columns.
absl::StatusOr<Inferred> InferSchedule(const ScheduleRows& rows);

}  // namespace weir

#endif  // WEIR_SCHEDULES_INFER_H_
