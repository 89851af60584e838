// SPDX-License-Identifier: Apache-2.0
// The text form of a schedule: the CSV of PyTorch's torch.distributed
// .pipelining, one row per rank, read and written in both of its formats.
//
//   compute_only                       compute_comms
//   0F0,0F1,0B0,0B1                    0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,...
//   1F0,1B0,1F1,1B1                    1RECV_F0,1F0,1B0,1SEND_B0,...
//
// An empty cell is an idle step; (0F7;7B3)OVERLAP_F_B is a pair that runs
// together. Beyond PyTorch's: spans (2B0-3), offloads (2O0) and reloads (2R0).
//
// PyTorch's dialect of 2024 wrote B for today's I (input gradient) and BW for
// today's B (the whole backward). PyTorch reads such a file without a word and
// trains something else; it is refused here unless it is asked for.
#ifndef WEIR_SCHEDULES_SCHEDULE_TEXT_H_
#define WEIR_SCHEDULES_SCHEDULE_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "schedules/comm_program.h"
#include "schedules/dependencies.h"
#include "schedules/schedule.h"

namespace weir {

enum class CsvDialect { kPyTorch, kPyTorchLegacy };

// Where an action stands in a file; its line is its rank + 1.
struct CellPlace {
  int32_t step;    // cells before it in the row, PyTorch's time step
  int32_t column;  // bytes, from 1
};

// A file as it was read: nothing about it is checked but its words.
struct ScheduleRows {
  std::string label;  // file, for messages
  CommProgram program;
  std::vector<std::vector<CellPlace>> places;  // as program.ranks
  // First idle cell of each rank, -1 where there is none.
  std::vector<int32_t> first_idle_column;

  bool has_transfers() const;  // compute_comms

  // Returns where a pass, counted among its rank's passes, stands among all
  // actions of the rank.
  Place InFile(Place pass) const;

  // Returns "<label>:<line>:<column>" of an action.
  std::string NameOf(Place action) const;
};

// Spaces and tabs around a cell, a byte order mark, CRLF and empty cells are
// accepted, an empty line only at the end. Errors name
// "<label>:<line>:<column>", all together.
absl::StatusOr<ScheduleRows> ParseScheduleRows(
    absl::string_view label, absl::string_view text,
    CsvDialect dialect = CsvDialect::kPyTorch);

// The passes of a compute_only file; transfers are errors.
absl::StatusOr<std::vector<std::vector<Action>>> ParseCsv(
    absl::string_view label, absl::string_view text);

// Prints one row per rank: compute_only for a schedule, what it holds for a
// program. ParseScheduleRows gives back the same actions.
std::string PrintCsv(const Schedule& schedule);
std::string PrintCsv(const CommProgram& program);

// What PyTorch could not read or run of it: spans, offloads, replicated stages.
// OK, or FailedPrecondition with one line for each.
absl::Status CheckPyTorchReads(const Schedule& schedule);

// Makes a schedule of parsed rows: one batch of all microbatches that occur,
// then a flush and one update; inference when every action is a forward. A
// stage whose microbatches run on several ranks is replicated: its routes are
// the shortest period that explains who runs what. InvalidArgument when a
// stage has no action, or one microbatch of it is on two ranks; the rest is for
// ValidateSchedule.
absl::StatusOr<Schedule> ScheduleFromRows(
    absl::string_view name, std::vector<std::vector<Action>> rank_actions);

// Makes a schedule of the passes of a file. Errors name lines and columns.
absl::StatusOr<Schedule> ScheduleFromRows(const ScheduleRows& rows);

}  // namespace weir

#endif  // WEIR_SCHEDULES_SCHEDULE_TEXT_H_
