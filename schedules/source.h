// SPDX-License-Identifier: Apache-2.0
// Loads a schedule by registry name or from a file.
#ifndef WEIR_SCHEDULES_SOURCE_H_
#define WEIR_SCHEDULES_SOURCE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "schedules/interop/schedule_text.h"
#include "schedules/schedule.h"

namespace weir::schedules {

// Returns true if the text contains a '/', or ends with .csv or .json.
bool IsScheduleFile(absl::string_view name_or_path);

// Reads PyTorch's CSV. Returns NotFound if there is no such file; syntax errors
// as in ParseScheduleRows.
absl::StatusOr<ScheduleRows> ReadScheduleRows(
    const std::string& path, CsvDialect dialect = CsvDialect::kPyTorch);

// Whether a file's own transfers are checked or ignored.
enum class FileTransfers { kChecked, kDropped };

// Reads a CSV (see ScheduleFromRows) or the output of ScheduleJson, and checks
// it: a CSV with CheckRows, including lines and columns; JSON, which has no
// lines of actions, with ValidateSchedule. The schedule is named after the
// file. Returns NotFound if there is no such file, and the errors of the
// functions named here.
absl::StatusOr<Schedule> LoadScheduleFile(
    const std::string& path, CsvDialect dialect = CsvDialect::kPyTorch,
    FileTransfers transfers = FileTransfers::kChecked);

// Loads the file, or finds, checks and generates the named schedule. A file
// determines its shape; returns InvalidArgument if that of `spec` differs, and
// the errors of LoadScheduleFile or GenerateSchedule.
absl::StatusOr<Schedule> GetSchedule(const std::string& name_or_path,
                                     const ScheduleSpec& spec);

// Returns true for a file that contains transfers. Commands that simulate or
// convert such a file report that weir derives the transfers from the passes.
bool OrdersTransfers(const std::string& name_or_path);

// Returns the stages per rank of a file's schedule, 1 if there are fewer stages
// than ranks. Returns InvalidArgument if the ranks do not divide the stages.
absl::StatusOr<int> ChunksOf(const Schedule& schedule);

// Returns ScheduleKind::uses_costs. Returns false for a file or an unknown
// name.
bool OrdersByCosts(const std::string& name_or_path);

// Returns Schedule::flush. Returns, here and below, the errors of
// LoadScheduleFile or FindScheduleKind.
absl::StatusOr<bool> ScheduleFlushes(const std::string& name_or_path);

// Returns ScheduleKind::repeats_microbatches; false for files.
absl::StatusOr<bool> RepeatsMicrobatches(const std::string& name_or_path);

// Returns true if the schedule splits backwards into input and weight
// gradients.
absl::StatusOr<bool> SplitsBackward(const std::string& name_or_path);

}  // namespace weir::schedules

#endif  // WEIR_SCHEDULES_SOURCE_H_
