// SPDX-License-Identifier: Apache-2.0
// A schedule by what a user calls it: a registry name, or a file.
#ifndef WEIR_SCHEDULES_SOURCE_H_
#define WEIR_SCHEDULES_SOURCE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "schedules/schedule.h"
#include "schedules/schedule_text.h"

namespace weir {

// Holds a '/', or ends with .csv or .json.
bool IsScheduleFile(absl::string_view name_or_path);

// Reads PyTorch's CSV; NotFound without the file, errors of syntax as
// ParseScheduleRows.
absl::StatusOr<ScheduleRows> ReadScheduleRows(
    const std::string& path, CsvDialect dialect = CsvDialect::kPyTorch);

// What becomes of the transfers that a file orders itself.
enum class FileTransfers { kChecked, kDropped };

// Reads a CSV (see ScheduleFromRows) or what ScheduleJson wrote, and checks all
// of it: a CSV as CheckRows, with lines and columns; JSON, which has no lines
// of actions, as ValidateSchedule. It is named after the file.
absl::StatusOr<Schedule> LoadScheduleFile(
    const std::string& path, CsvDialect dialect = CsvDialect::kPyTorch,
    FileTransfers transfers = FileTransfers::kChecked);

// Loads the file, or finds, checks and generates the named schedule. A file
// brings its shape: InvalidArgument when `spec` has another.
absl::StatusOr<Schedule> GetSchedule(const std::string& name_or_path,
                                     const ScheduleSpec& spec);

// Is it a file that orders transfers too? Weir derives its own from the passes:
// what simulates or converts such a file says so.
bool OrdersTransfers(const std::string& name_or_path);

// Stages per rank of a file's schedule: 1 when stages are fewer than ranks.
// InvalidArgument when ranks do not divide the stages.
absl::StatusOr<int> ChunksOf(const Schedule& schedule);

// See ScheduleKind::uses_costs. False for a file, and for an unknown name.
bool OrdersByCosts(const std::string& name_or_path);

// See Schedule::flush.
absl::StatusOr<bool> ScheduleFlushes(const std::string& name_or_path);

}  // namespace weir

#endif  // WEIR_SCHEDULES_SOURCE_H_
