// SPDX-License-Identifier: Apache-2.0
// The text form of a schedule: the compute-only CSV that PyTorch's
// torch.distributed.pipelining reads, one row per rank:
//
//   0F0,0F1,0B0,0B1
//   1F0,1B0,1F1,1B1
#ifndef WEIR_SCHEDULES_SCHEDULE_TEXT_H_
#define WEIR_SCHEDULES_SCHEDULE_TEXT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "schedules/schedule.h"

namespace weir {

// Prints one row per rank. ParseCsv gives back the same rank_actions.
std::string PrintCsv(const Schedule& schedule);

// Parses the ordered actions of every rank. Spaces and tabs around a cell,
// CRLF and empty cells (idle steps) are accepted, an empty line only at the
// end. Errors name "<label>:<line>:<column>", all together.
absl::StatusOr<std::vector<std::vector<Action>>> ParseCsv(
    absl::string_view label, absl::string_view text);

// Makes a schedule of parsed rows: a stage lives on the rank that runs it, one
// batch of all microbatches that occur, then a flush and one update.
// InvalidArgument when a stage occurs on no rank or on two; the rest is for
// ValidateSchedule.
absl::StatusOr<Schedule> ScheduleFromRows(
    absl::string_view name, std::vector<std::vector<Action>> rank_actions);

}  // namespace weir

#endif  // WEIR_SCHEDULES_SCHEDULE_TEXT_H_
