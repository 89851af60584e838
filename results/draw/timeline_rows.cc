// SPDX-License-Identifier: Apache-2.0
#include "results/draw/timeline_rows.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "results/pipeline_events.h"
#include "results/result_enums.h"
#include "results/summary.h"
#include "schedules/semantics.h"
#include "schedules/walk.h"

namespace weir::results {
namespace {

std::string Counted(int64_t count, absl::string_view one,
                    absl::string_view several) {
  return absl::StrCat(count, " ", count == 1 ? one : several);
}

absl::Status TakesNoTime(absl::string_view label) {
  return absl::InvalidArgumentError(absl::StrCat(label, ": takes no time"));
}

absl::StatusOr<std::vector<int>> ChosenRanks(absl::string_view label,
                                             int num_ranks,
                                             std::span<const uint32_t> ranks) {
  std::vector<int> chosen;
  for (const uint32_t rank : ranks) {
    if (rank >= static_cast<uint32_t>(num_ranks)) {
      return absl::InvalidArgumentError(absl::StrCat(
          label, ": --ranks has ", rank, ", expected ranks below ", num_ranks));
    }
    chosen.push_back(static_cast<int>(rank));
  }
  std::sort(chosen.begin(), chosen.end());
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  if (!chosen.empty()) return chosen;
  for (int rank = 0; rank < num_ranks; ++rank) chosen.push_back(rank);
  return chosen;
}

bool IsCopy(Timeline::Actions::Op op) {
  return op > Timeline::Actions::OPTIMIZER_STEP;
}

// Sorts the boxes, finds the stages, and gives overlapped passes their lanes.
void FinishRow(TimelineRow* row) {
  std::vector<TimelineBox>& boxes = row->boxes;
  std::stable_sort(boxes.begin(), boxes.end(),
                   [](const auto& a, const auto& b) {
                     return std::tuple(IsCopy(a.op), a.start, a.end) <
                            std::tuple(IsCopy(b.op), b.start, b.end);
                   });
  std::set<int32_t> stages;
  for (size_t i = 0; i < boxes.size(); ++i) {
    TimelineBox& box = boxes[i];
    if (IsCopy(box.op)) {
      box.lane = TimelineBox::Lane::kHost;
      continue;
    }
    stages.insert(box.stage);
    if (i == 0 || box.end <= box.start) continue;
    TimelineBox& before = boxes[i - 1];
    if (before.start == box.start && before.end == box.end &&
        before.lane == TimelineBox::Lane::kFull) {
      before.lane = TimelineBox::Lane::kUpper;
      box.lane = TimelineBox::Lane::kLower;
    }
  }
  row->stages.assign(stages.begin(), stages.end());
}

void FindVersions(TimelineRows* rows) {
  std::set<int32_t> versions;
  for (const TimelineRow& row : rows->rows) {
    for (const TimelineBox& box : row.boxes) {
      if (box.weight_version >= 0) versions.insert(box.weight_version);
    }
  }
  rows->has_versions = versions.size() > 1;
}

// Returns [gpu, op, stage, microbatch] -> version as a sorted list.
using VersionKey = std::tuple<uint32_t, int, int32_t, int32_t>;
std::vector<std::pair<VersionKey, int32_t>> VersionsOf(const Result& result) {
  const auto& columns = result.timeline().actions();
  std::vector<std::pair<VersionKey, int32_t>> versions;
  for (int i = 0; i < columns.weight_version_size(); ++i) {
    versions.emplace_back(VersionKey(columns.gpu(i), columns.op(i),
                                     columns.stage(i), columns.microbatch(i)),
                          columns.weight_version(i));
  }
  std::sort(versions.begin(), versions.end());
  return versions;
}

int32_t VersionRead(const schedules::Semantics& semantics,
                    const schedules::Action& action) {
  const auto& uses = semantics.uses[action.stage];
  if (action.op == schedules::Op::kForward) {
    return uses[action.microbatch].forward_version;
  }
  return schedules::MakesInputGradient(action.op)
             ? uses[action.microbatch].backward_version
             : -1;
}

}  // namespace

double TimelineRow::StagePart(int32_t stage) const {
  if (stages.size() < 2) return 0;
  const auto at = std::lower_bound(stages.begin(), stages.end(), stage);
  return static_cast<double>(at - stages.begin()) /
         static_cast<double>(stages.size() - 1);
}

size_t TimelineRows::num_boxes() const {
  size_t count = 0;
  for (const TimelineRow& row : rows) count += row.boxes.size();
  return count;
}

absl::StatusOr<TimelineRows> RowsOfResult(const Result& result,
                                          std::span<const std::string> names,
                                          std::span<const uint32_t> ranks) {
  ASSIGN_OR_RETURN(const PipelineEvents events,
                   PipelineEventsOf(result.schedule(), result));
  if (!(events.makespan_seconds > 0)) {
    return TakesNoTime(result.schedule());
  }
  ASSIGN_OR_RETURN(const std::vector<int> chosen,
                   ChosenRanks(result.schedule(), events.num_ranks(), ranks));
  const auto versions = VersionsOf(result);
  const HostCopies& copies = result.host_copies();
  std::vector<std::vector<int>> copies_of(
      static_cast<size_t>(result.ranks_size()));  // [gpu]: entries
  for (int i = 0; i < copies.gpu_size(); ++i) {
    copies_of[copies.gpu(i)].push_back(i);
  }
  TimelineRows all;
  all.title = RowName(result);
  all.subtitle = absl::StrCat(
      Counted(events.num_ranks(), "rank", "ranks"), ", ",
      Counted(result.num_microbatches(), "microbatch", "microbatches"),
      ", step time ", FormatSeconds(result.batch_seconds()));
  all.end = events.makespan_seconds;
  for (const int rank : chosen) {
    TimelineRow row;
    const int gpu = events.gpus[rank];
    row.label =
        names.empty() ? absl::StrCat("rank ", rank) : std::string(names[gpu]);
    for (const TimelineAction& action : events.ranks[rank]) {
      const VersionKey key(gpu, action.op, action.stage, action.microbatch);
      const auto at = std::lower_bound(versions.begin(), versions.end(),
                                       std::pair(key, int32_t{-1}));
      const bool known = at != versions.end() && at->first == key;
      row.boxes.push_back({action.op, action.stage, action.microbatch,
                           action.num_microbatches, action.start_seconds,
                           action.end_seconds, known ? at->second : -1});
    }
    for (const int i : copies_of[gpu]) {
      row.boxes.push_back({copies.op(i), copies.stage(i), copies.microbatch(i),
                           1, copies.start_seconds(i), copies.end_seconds(i)});
    }
    FinishRow(&row);
    all.rows.push_back(std::move(row));
  }
  FindVersions(&all);
  return all;
}

absl::StatusOr<TimelineRows> RowsOfSchedule(const schedules::Schedule& schedule,
                                            std::span<const uint32_t> ranks) {
  ASSIGN_OR_RETURN(const schedules::Semantics semantics,
                   schedules::InterpretSchedule(schedule));
  ASSIGN_OR_RETURN(const std::vector<int> chosen,
                   ChosenRanks(schedule.name, schedule.num_ranks, ranks));
  const schedules::WalkTimes times = schedules::TimedWalk(schedule, {});
  TimelineRows all;
  all.title = schedule.name;
  all.subtitle = absl::StrCat(
      Counted(schedule.num_ranks, "rank", "ranks"), ", ",
      Counted(schedule.num_stages, "stage", "stages"), ", ",
      Counted(schedule.num_microbatches, "microbatch", "microbatches"),
      schedule.num_batches > 1
          ? absl::StrCat(" a batch, ", schedule.num_batches, " batches")
          : "");
  all.in_seconds = false;
  all.end = times.makespan();
  for (const int rank : chosen) {
    TimelineRow row;
    row.label = absl::StrCat("rank ", rank);
    const auto& actions = schedule.rank_actions[rank];
    for (size_t i = 0; i < actions.size(); ++i) {
      const schedules::Action& action = actions[i];
      row.boxes.push_back({TimelineOpOf(action.op), action.stage,
                           action.microbatch, action.num_microbatches,
                           times.start[rank][i], times.end[rank][i],
                           VersionRead(semantics, action)});
    }
    FinishRow(&row);
    all.rows.push_back(std::move(row));
  }
  FindVersions(&all);
  return all;
}

absl::StatusOr<TimelineRows> RowsOfPasses(
    const std::string& title, std::vector<std::vector<TimelineBox>> passes,
    double makespan, std::span<const uint32_t> ranks) {
  if (!(makespan > 0)) return TakesNoTime(title);
  ASSIGN_OR_RETURN(const std::vector<int> chosen,
                   ChosenRanks(title, static_cast<int>(passes.size()), ranks));
  TimelineRows all;
  all.title = title;
  all.end = makespan;
  for (const int rank : chosen) {
    TimelineRow row;
    row.label = absl::StrCat("rank ", rank);
    row.boxes = std::move(passes[rank]);
    FinishRow(&row);
    all.rows.push_back(std::move(row));
  }
  return all;
}

}  // namespace weir::results
