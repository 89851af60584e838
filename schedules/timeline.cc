// SPDX-License-Identifier: Apache-2.0
#include "schedules/timeline.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "schedules/replay.h"

namespace weir {
namespace {

// Digits and letters repeat together, so that "3" and "d" always belong to the
// same microbatches.
constexpr int kCycle = 10;

int64_t UnitsOf(Op op) { return op == Op::kBackward ? 2 : 1; }

char Mark(const Action& action) {
  const char offset = static_cast<char>(action.microbatch % kCycle);
  if (action.op == Op::kForward) return static_cast<char>('0' + offset);
  if (action.op == Op::kBackwardWeight) return static_cast<char>('A' + offset);
  return static_cast<char>('a' + offset);
}

// Start of every action, [rank][position].
using Starts = std::vector<std::vector<int64_t>>;

Starts StartTimes(const Schedule& schedule) {
  Starts starts(schedule.num_ranks);
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    starts[rank].resize(schedule.rank_actions[rank].size());
  }
  const size_t total = schedule.total_microbatches();
  // Ends of forwards and of input gradients, by stage and microbatch.
  std::array<std::vector<int64_t>, 2> ends;
  for (auto& table : ends) table.resize(schedule.num_stages * total);
  auto end_of = [&](const Action& action) -> int64_t& {
    return ends[action.op != Op::kForward]
               [action.stage * total + action.microbatch];
  };
  std::vector<int64_t> rank_end(schedule.num_ranks, 0);
  Replay(schedule, [&](int rank, int32_t position) {
    const Action& action = schedule.rank_actions[rank][position];
    int64_t start = rank_end[rank];
    if (const auto awaited = AwaitedAction(schedule, action)) {
      start = std::max(start, end_of(*awaited));
    }
    starts[rank][position] = start;
    rank_end[rank] = start + UnitsOf(action.op);
    if (action.op != Op::kBackwardWeight) end_of(action) = rank_end[rank];
  });
  return starts;
}

int64_t Makespan(const Schedule& schedule, const Starts& starts) {
  int64_t makespan = 0;
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    if (starts[rank].empty()) continue;
    const Op last = schedule.rank_actions[rank].back().op;
    makespan = std::max(makespan, starts[rank].back() + UnitsOf(last));
  }
  return makespan;
}

struct Row {
  int rank;
  int stage;
};

// One row per rank, or one per stage where a rank holds several.
std::vector<Row> RowsOf(const Schedule& schedule) {
  std::vector<Row> rows;
  rows.reserve(schedule.num_stages);
  for (int stage = 0; stage < schedule.num_stages; ++stage) {
    rows.push_back({schedule.stage_rank[stage], stage});
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.rank < b.rank; });
  return rows;
}

std::string RightAligned(int number, int largest) {
  const std::string text = absl::StrCat(number);
  return std::string(absl::StrCat(largest).size() - text.size(), ' ') + text;
}

std::string Label(const Schedule& schedule, const Row& row) {
  std::string label =
      absl::StrCat("rank ", RightAligned(row.rank, schedule.num_ranks - 1));
  if (schedule.num_stages > schedule.num_ranks) {
    absl::StrAppend(&label, " stage ",
                    RightAligned(row.stage, schedule.num_stages - 1));
  }
  return label + " ";
}

// The first `num_columns` units of a row: idle time is '.', time in another
// stage of the rank ' '.
std::string Cells(const Schedule& schedule, const Row& row,
                  const std::vector<int64_t>& starts, int64_t num_columns) {
  std::string cells(num_columns, '.');
  const std::vector<Action>& actions = schedule.rank_actions[row.rank];
  for (size_t position = 0; position < actions.size(); ++position) {
    const Action& action = actions[position];
    if (starts[position] >= num_columns) break;
    const int64_t width =
        std::min(UnitsOf(action.op), num_columns - starts[position]);
    cells.replace(starts[position], width, width,
                  action.stage == row.stage ? Mark(action) : ' ');
  }
  return cells;
}

std::string Legend(const Schedule& schedule) {
  bool has_split_backward = false;
  for (const std::vector<Action>& actions : schedule.rank_actions) {
    for (const Action& action : actions) {
      if (action.op == Op::kBackwardWeight) has_split_backward = true;
    }
  }
  return absl::StrCat(
      "digit: forward of that microbatch",
      schedule.total_microbatches() > kCycle ? " modulo 10" : "",
      ", letter: its backward",
      has_split_backward ? " (upper case: weight gradient)" : "", ", '.': idle",
      schedule.num_stages > schedule.num_ranks
          ? ", ' ': the rank runs another stage"
          : "",
      "\n");
}

}  // namespace

std::string DrawTimeline(const Schedule& schedule,
                         const TimelineOptions& options) {
  const Starts starts = StartTimes(schedule);
  const int64_t makespan = Makespan(schedule, starts);
  const std::vector<Row> rows = RowsOf(schedule);
  const int64_t frame = std::ssize(Label(schedule, rows[0])) + 2;
  const int64_t num_columns =
      std::min(makespan, std::max<int64_t>(options.max_columns - frame, 1));
  const bool is_cut = num_columns < makespan;
  std::string picture;
  for (const Row& row : rows) {
    absl::StrAppend(&picture, Label(schedule, row), "|",
                    Cells(schedule, row, starts[row.rank], num_columns),
                    is_cut ? ">" : "|", "\n");
  }
  absl::StrAppend(&picture, Legend(schedule));
  if (is_cut) {
    absl::StrAppend(&picture, "cut: the first ", num_columns, " of ", makespan,
                    " units of time\n");
  }
  return picture;
}

}  // namespace weir
