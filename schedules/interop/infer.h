// SPDX-License-Identifier: Apache-2.0
// Infers a schedule from rows of actions.
#ifndef WEIR_SCHEDULES_INTEROP_INFER_H_
#define WEIR_SCHEDULES_INTEROP_INFER_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "schedules/dependencies.h"
#include "schedules/interop/schedule_text.h"
#include "schedules/schedule.h"

namespace weir::schedules {

struct Inferred {
  // Like the result of ScheduleFromRows, for any rows. A microbatch of a stage
  // belongs to the first rank that runs it; if none does, to the rank of the
  // stage's first known microbatch; -1 if the stage has no actions.
  Schedule schedule;
  struct Problem {
    Place place;  // of the pass, counted without transfers
    std::string message;
  };
  std::vector<Problem> problems;  // rejected by ScheduleFromRows
};

// Returns the place of a pass for messages, such as "a.csv:1:5".
using NamePlace = std::function<std::string(Place)>;

// Returns InvalidArgument if there are too few actions for the stages and
// microbatches that they contain: "99999999F0" is only ten bytes.
absl::StatusOr<Inferred> InferSchedule(
    absl::string_view name, std::vector<std::vector<Action>> rank_actions,
    const NamePlace& name_place = nullptr);

// Does the same for the passes of a file. Returns the same errors, with lines
// and columns.
absl::StatusOr<Inferred> InferSchedule(const ScheduleRows& rows);

}  // namespace weir::schedules

#endif  // WEIR_SCHEDULES_INTEROP_INFER_H_
