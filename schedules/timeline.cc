// SPDX-License-Identifier: Apache-2.0
#include "schedules/timeline.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/text_table.h"
#include "schedules/walk.h"

namespace weir::schedules {
namespace {

// Digits and letters repeat together, so that "3" and "d" always refer to the
// same microbatches.
constexpr int kCycle = 10;

char Mark(const Action& action) {
  const char offset = static_cast<char>(action.microbatch % kCycle);
  switch (action.op) {
    case Op::kForward:
    case Op::kOffload:
    case Op::kReload:
      return static_cast<char>('0' + offset);
    case Op::kBackwardWeight:
      return static_cast<char>('A' + offset);
    case Op::kBackward:
    case Op::kBackwardInput:
    case WEIR_UNSCHEDULED_OPS:
      break;
  }
  return static_cast<char>('a' + offset);
}

// There is one row per rank, or one per stage if a rank has several, and one
// per channel to the host if there are any.
struct TimelineRow {
  enum Kind { kCompute, kOffloads, kReloads };

  int rank;
  int stage;
  Kind kind = kCompute;
};

TimelineRow::Kind KindOf(Op op) {
  if (op == Op::kOffload) return TimelineRow::kOffloads;
  return op == Op::kReload ? TimelineRow::kReloads : TimelineRow::kCompute;
}

struct Picture {
  const Schedule& schedule;
  WalkTimes times;
  bool has_offloads = false;
  bool has_weight_gradients = false;
  bool has_many_stages = false;  // on some rank
  std::vector<TimelineRow> rows;
};

Picture MakePicture(const Schedule& schedule) {
  Picture picture{schedule, TimedWalk(schedule, {}), false, false, false, {}};
  for (const std::vector<Action>& actions : schedule.rank_actions) {
    for (const Action& action : actions) {
      picture.has_offloads |= !IsCompute(action.op);
      picture.has_weight_gradients |= action.op == Op::kBackwardWeight;
    }
  }
  std::vector<std::vector<int>> stages(schedule.num_ranks);
  for (int stage = 0; stage < schedule.num_stages; ++stage) {
    for (int rank : schedule.RanksOf(stage)) stages[rank].push_back(stage);
  }
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    picture.has_many_stages |= stages[rank].size() > 1;
    for (int stage : stages[rank]) picture.rows.push_back({rank, stage});
    if (!picture.has_offloads) continue;
    picture.rows.push_back({rank, -1, TimelineRow::kOffloads});
    picture.rows.push_back({rank, -1, TimelineRow::kReloads});
  }
  return picture;
}

std::string RightAligned(int number, int largest) {
  const std::string text = absl::StrCat(number);
  return std::string(absl::StrCat(largest).size() - text.size(), ' ') + text;
}

std::string Label(const Picture& picture, const TimelineRow& row) {
  const Schedule& schedule = picture.schedule;
  std::string label =
      absl::StrCat("rank ", RightAligned(row.rank, schedule.num_ranks - 1));
  std::string detail;
  if (picture.has_many_stages || picture.has_offloads) {
    const int stage = std::max(row.stage, 0);  // a channel has none
    detail =
        absl::StrCat(" stage ", RightAligned(stage, schedule.num_stages - 1));
  }
  if (row.kind != TimelineRow::kCompute) {
    const std::string channel =
        row.kind == TimelineRow::kOffloads ? " out" : " in";
    detail = channel + std::string(detail.size() - channel.size(), ' ');
  }
  return label + detail + " ";
}

// Returns the first `num_columns` time units of a row: idle time is '.', time
// in another stage of the rank is ' '.
std::string Cells(const Picture& picture, const TimelineRow& row,
                  int64_t num_columns) {
  std::string cells(num_columns, '.');
  const auto& starts = picture.times.start[row.rank];
  const auto& ends = picture.times.end[row.rank];
  const auto& actions = picture.schedule.rank_actions[row.rank];
  for (size_t position = 0; position < actions.size(); ++position) {
    const Action& action = actions[position];
    if (KindOf(action.op) != row.kind) continue;
    const auto start = std::llround(starts[position]);
    const auto end =
        std::min<int64_t>(std::llround(ends[position]), num_columns);
    const bool here =
        row.kind != TimelineRow::kCompute || action.stage == row.stage;
    for (int64_t column = start; column < end; ++column) {
      if (here) {
        cells[column] = Mark(action);
      } else if (cells[column] == '.') {
        cells[column] = ' ';
      }
    }
  }
  return cells;
}

std::string Legend(const Picture& picture) {
  return WrapText(absl::StrCat(
      "digit: forward of that microbatch",
      picture.schedule.total_microbatches() > kCycle ? " modulo 10" : "",
      picture.schedule.forward_only ? "" : ", letter: its backward",
      picture.has_weight_gradients ? " (upper case: weight gradient)" : "",
      ", '.': idle",
      picture.has_many_stages ? ", ' ': the rank runs another stage" : "",
      picture.has_offloads ? ", out and in: copies to and from the host" : "",
      "\n"));
}

}  // namespace

std::string DrawTimeline(const Schedule& schedule,
                         const TimelineOptions& options) {
  const Picture picture = MakePicture(schedule);
  const auto makespan =
      static_cast<int64_t>(std::llround(picture.times.makespan()));
  const int64_t frame = std::ssize(Label(picture, picture.rows[0])) + 2;
  const int64_t num_columns =
      std::min(makespan, std::max<int64_t>(options.max_columns - frame, 1));
  const bool is_cut = num_columns < makespan;
  std::string text;
  for (const TimelineRow& row : picture.rows) {
    absl::StrAppend(&text, Label(picture, row), "|",
                    Cells(picture, row, num_columns), is_cut ? ">" : "|", "\n");
  }
  absl::StrAppend(&text, Legend(picture));
  if (is_cut) {
    absl::StrAppend(&text, "truncated to the first ", num_columns, " of ",
                    makespan, " units of time\n");
  }
  return text;
}

}  // namespace weir::schedules
