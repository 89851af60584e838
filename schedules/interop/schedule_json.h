// SPDX-License-Identifier: Apache-2.0
// Prints and parses a schedule and its weight versions as JSON:
//
//   {"schedule": "pipedream-2bw", "num_ranks": 4, "num_stages": 4,
//    "num_microbatches": 8, "num_batches": 3, "flush": false,
//    "routes": [[0, 1, 2, 3]], "weights": {...}, ...
//    "ranks": [{"rank": 0, "actions": ["0F0", "0F1", ...]}, ...],
//    "versions": [{"stage": 0, "microbatch": 0, "forward_version": 0,
//                  "backward_version": 0, "update": 0, "staleness": 0}, ...],
//    "max_live_versions": [2, 2, 2, 2], "max_staleness": [1, 1, 1, 1],
//    "verdict": "delay 1, constant: ..."}
#ifndef WEIR_SCHEDULES_INTEROP_SCHEDULE_JSON_H_
#define WEIR_SCHEDULES_INTEROP_SCHEDULE_JSON_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "schedules/schedule.h"
#include "schedules/semantics.h"

namespace weir::schedules {

// Prints a schedule. Requires: `semantics` is InterpretSchedule(schedule).
// Equal input gives equal bytes; the text ends without a newline.
std::string ScheduleJson(const Schedule& schedule, const Semantics& semantics);

// Parses a schedule. Unlike CSV, JSON contains routes, batches and the weight
// policy. Does not read what follows from the schedule (versions, verdict).
// Returns InvalidArgument with every field that is missing or of a wrong type;
// everything else is left to ValidateSchedule. The schedule's name is `label`.
absl::StatusOr<Schedule> ParseScheduleJson(absl::string_view label,
                                           absl::string_view text);

}  // namespace weir::schedules

#endif  // WEIR_SCHEDULES_INTEROP_SCHEDULE_JSON_H_
