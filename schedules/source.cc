// SPDX-License-Identifier: Apache-2.0
#include "schedules/source.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "schedules/interop/schedule_json.h"
#include "schedules/lint/lint.h"
#include "schedules/registry.h"
#include "schedules/validate.h"

namespace weir::schedules {
namespace {

// 1.5 million actions of compute_comms take 16 MB.
constexpr size_t kMaxBytes = size_t{1} << 30;

bool IsJson(absl::string_view path) {
  return absl::EndsWithIgnoreCase(path, ".json");
}

// Removes transfers. The remaining passes keep their lines and columns.
void DropTransfers(ScheduleRows* rows) {
  for (size_t rank = 0; rank < rows->places.size(); ++rank) {
    std::vector<CommAction>& row = rows->program.ranks[rank];
    std::vector<CellPlace>& places = rows->places[rank];
    size_t kept = 0;
    for (size_t i = 0; i < row.size(); ++i) {
      if (!IsScheduled(row[i].op)) continue;
      row[kept] = row[i];
      places[kept++] = places[i];
    }
    row.resize(kept);
    places.resize(kept);
  }
}

absl::Status CheckShape(const Schedule& schedule, const ScheduleSpec& spec,
                        int chunks) {
  Problems problems(schedule.name);
  const auto check = [&](absl::string_view field, int found, int asked) {
    if (found == asked) return;
    problems.Add(field,
                 absl::StrCat("is ", found, ", but ", asked, " is requested"));
  };
  check("pipeline", schedule.num_ranks, spec.num_ranks);
  check("chunks", chunks, spec.num_chunks);
  check("num_microbatches", schedule.num_microbatches, spec.num_microbatches);
  return problems.ToStatus();
}

}  // namespace

bool IsScheduleFile(absl::string_view name_or_path) {
  return absl::StrContains(name_or_path, '/') ||
         absl::EndsWithIgnoreCase(name_or_path, ".csv") || IsJson(name_or_path);
}

absl::StatusOr<ScheduleRows> ReadScheduleRows(const std::string& path,
                                              CsvDialect dialect) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxBytes));
  return ParseScheduleRows(path, text, dialect);
}

absl::StatusOr<Schedule> LoadScheduleFile(const std::string& path,
                                          CsvDialect dialect,
                                          FileTransfers transfers) {
  if (IsJson(path)) {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxBytes));
    ASSIGN_OR_RETURN(Schedule schedule, ParseScheduleJson(path, text));
    RETURN_IF_ERROR(ValidateSchedule(schedule));
    return schedule;
  }
  ASSIGN_OR_RETURN(ScheduleRows rows, ReadScheduleRows(path, dialect));
  if (transfers == FileTransfers::kDropped) DropTransfers(&rows);
  ASSIGN_OR_RETURN(Schedule schedule, ScheduleFromRows(rows));
  RETURN_IF_ERROR(CheckRows(rows));
  return schedule;
}

bool OrdersTransfers(const std::string& name_or_path) {
  if (!IsScheduleFile(name_or_path) || IsJson(name_or_path)) return false;
  const absl::StatusOr<ScheduleRows> rows = ReadScheduleRows(name_or_path);
  return rows.ok() && rows->has_transfers();
}

absl::StatusOr<int> ChunksOf(const Schedule& schedule) {
  if (schedule.num_stages < schedule.num_ranks) return 1;
  if (schedule.num_stages % schedule.num_ranks == 0) {
    return schedule.num_stages / schedule.num_ranks;
  }
  Problems problems(schedule.name);
  problems.Add("", absl::StrCat("has ", schedule.num_stages, " stages on ",
                                schedule.num_ranks,
                                " ranks, expected as many on every rank"));
  return problems.ToStatus();
}

absl::StatusOr<Schedule> GetSchedule(const std::string& name_or_path,
                                     const ScheduleSpec& spec) {
  if (!IsScheduleFile(name_or_path)) {
    return GenerateSchedule(name_or_path, spec);
  }
  ASSIGN_OR_RETURN(Schedule schedule, LoadScheduleFile(name_or_path));
  ASSIGN_OR_RETURN(const int chunks, ChunksOf(schedule));
  RETURN_IF_ERROR(CheckShape(schedule, spec, chunks));
  return schedule;
}

bool OrdersByCosts(const std::string& name_or_path) {
  if (IsScheduleFile(name_or_path)) return false;
  const auto kind = FindScheduleKind(name_or_path);
  return kind.ok() && (*kind)->uses_costs;
}

absl::StatusOr<bool> ScheduleFlushes(const std::string& name_or_path) {
  if (IsScheduleFile(name_or_path)) {
    ASSIGN_OR_RETURN(const Schedule schedule, LoadScheduleFile(name_or_path));
    return schedule.flush;
  }
  ASSIGN_OR_RETURN(const ScheduleKind* kind, FindScheduleKind(name_or_path));
  return kind->flush;
}

absl::StatusOr<bool> RepeatsMicrobatches(const std::string& name_or_path) {
  if (IsScheduleFile(name_or_path)) return false;
  ASSIGN_OR_RETURN(const ScheduleKind* kind, FindScheduleKind(name_or_path));
  return kind->repeats_microbatches;
}

absl::StatusOr<bool> SplitsBackward(const std::string& name_or_path) {
  if (!IsScheduleFile(name_or_path)) {
    ASSIGN_OR_RETURN(const ScheduleKind* kind, FindScheduleKind(name_or_path));
    return kind->splits_backward;
  }
  ASSIGN_OR_RETURN(const Schedule schedule, LoadScheduleFile(name_or_path));
  return std::any_of(schedule.rank_actions.begin(), schedule.rank_actions.end(),
                     [](const std::vector<Action>& actions) {
                       return std::any_of(actions.begin(), actions.end(),
                                          [](const Action& action) {
                                            return action.op ==
                                                   Op::kBackwardInput;
                                          });
                     });
}

}  // namespace weir::schedules
