// SPDX-License-Identifier: Apache-2.0
// Parses and prints a schedule in both formats of the CSV of PyTorch's
// torch.distributed.pipelining, with one row per rank:
//
//   compute_only                       compute_comms
//   0F0,0F1,0B0,0B1                    0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,...
//   1F0,1B0,1F1,1B1                    1RECV_F0,1F0,1B0,1SEND_B0,...
//
// An empty cell is an idle step; (0F7;7B3)OVERLAP_F_B is an overlapped pair.
// Extensions of weir: spans (2B0-3), offloads (2O0) and reloads (2R0).
//
// PyTorch's dialect of 2024 wrote B for today's I (input gradient) and BW for
// today's B (the whole backward). Today's PyTorch silently misreads such a
// file. weir rejects it unless the dialect is requested.
#ifndef WEIR_SCHEDULES_INTEROP_SCHEDULE_TEXT_H_
#define WEIR_SCHEDULES_INTEROP_SCHEDULE_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "schedules/comm/comm_program.h"
#include "schedules/dependencies.h"
#include "schedules/schedule.h"

namespace weir::schedules {

enum class CsvDialect { kPyTorch, kPyTorchLegacy };

// The place of an action in a file; its line is its rank + 1.
struct CellPlace {
  int32_t step;    // preceding cells in the row, PyTorch's time step
  int32_t column;  // in bytes, from 1
};

// The contents of a file after parsing. Only the syntax has been checked.
struct ScheduleRows {
  std::string label;  // file, for messages
  CommProgram program;
  std::vector<std::vector<CellPlace>> places;  // same shape as program.ranks
  // First idle cell of each rank, -1 if there is none.
  std::vector<int32_t> first_idle_column;

  bool has_transfers() const;  // true for compute_comms

  // Returns the place among all actions of the rank for a pass that is counted
  // among the rank's passes only.
  Place InFile(Place pass) const;

  // Returns "<label>:<line>:<column>" of an action.
  std::string NameOf(Place action) const;
};

// Parses a file. Accepts spaces and tabs around a cell, a byte order mark, CRLF
// and empty cells, and empty lines at the end. Returns InvalidArgument with all
// errors, each with "<label>:<line>:<column>", also for the other dialect.
absl::StatusOr<ScheduleRows> ParseScheduleRows(
    absl::string_view label, absl::string_view text,
    CsvDialect dialect = CsvDialect::kPyTorch);

// Parses the passes of a compute_only file. Transfers are errors. Returns
// InvalidArgument if it has transfers, and the errors of ParseScheduleRows.
absl::StatusOr<std::vector<std::vector<Action>>> ParseCsv(
    absl::string_view label, absl::string_view text);

// Prints one row per rank: a schedule as compute_only, a program with all its
// actions. ParseScheduleRows returns the same actions.
std::string PrintCsv(const Schedule& schedule);
std::string PrintCsv(const CommProgram& program);

// Returns FailedPrecondition with one line for each feature of the schedule
// that PyTorch cannot read or run, such as spans, offloads and replicated
// stages.
absl::Status CheckPyTorchReads(const Schedule& schedule);

// Creates a schedule from parsed rows: one batch of all microbatches that
// occur, then a flush and one update; inference if every action is a forward. A
// stage whose microbatches run on several ranks is replicated, and its routes
// are the shortest period that explains them. Returns InvalidArgument if a
// stage has no action, or one of its microbatches is on two ranks; everything
// else is left to ValidateSchedule.
absl::StatusOr<Schedule> ScheduleFromRows(
    absl::string_view name, std::vector<std::vector<Action>> rank_actions);

// Creates a schedule from the passes of a file. Returns the same errors, with
// lines and columns.
absl::StatusOr<Schedule> ScheduleFromRows(const ScheduleRows& rows);

}  // namespace weir::schedules

#endif  // WEIR_SCHEDULES_INTEROP_SCHEDULE_TEXT_H_
