// SPDX-License-Identifier: Apache-2.0
// The passes of a pipeline by row, for pictures of timelines.
#ifndef WEIR_RESULTS_DRAW_TIMELINE_ROWS_H_
#define WEIR_RESULTS_DRAW_TIMELINE_ROWS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "results/result.pb.h"
#include "schedules/schedule.h"

namespace weir::results {

struct TimelineBox {
  // Overlapped passes share the height of a row; copies to and from the host
  // are below it.
  enum class Lane { kFull, kUpper, kLower, kHost };
  Timeline::Actions::Op op = Timeline::Actions::FORWARD;
  int32_t stage = 0;
  int32_t microbatch = 0;
  uint32_t num_microbatches = 1;
  double start = 0, end = 0;    // see TimelineRows::in_seconds
  int32_t weight_version = -1;  // that it reads; -1: none, or not known
  Lane lane = Lane::kFull;
  // Seconds by which it may end later without a longer run; 0: critical.
  // Only if TimelineRows::has_slack.
  double slack = 0;
};

struct TimelineRow {
  std::string label;
  std::vector<TimelineBox> boxes;  // by start
  std::vector<int32_t> stages;     // that compute here, ascending

  // Returns the position of a stage among the row's stages, from 0 to 1.
  double StagePart(int32_t stage) const;
};

struct TimelineRows {
  std::string title;
  std::string subtitle;    // "4 ranks, 8 microbatches, ..."
  bool in_seconds = true;  // false: in forward passes of one stage
  double end = 0;          // the makespan, in this unit
  std::vector<TimelineRow> rows;
  // Several weight versions are read, and they are known.
  bool has_versions = false;
  bool has_slack = false;  // the slack of all boxes is known
  std::string note;        // for below the legend

  size_t num_boxes() const;
};

// Returns a row per rank of replica 0, tensor rank 0. `names`: of the result's
// GPUs; empty: "rank 0". Returns the errors of PipelineEventsOf, and
// InvalidArgument if the run takes no time or a rank of `ranks` (empty: all)
// does not exist.
absl::StatusOr<TimelineRows> RowsOfResult(
    const Result& result, std::span<const std::string> names = {},
    std::span<const uint32_t> ranks = {});

// Returns a row per rank, with the costs of TimedWalk's default: a forward
// takes 1, its backward 2, I and W 1 each, transfers 0. Requires:
// ValidateSchedule(schedule) is OK. Returns InvalidArgument if a rank of
// `ranks` does not exist.
absl::StatusOr<TimelineRows> RowsOfSchedule(
    const schedules::Schedule& schedule, std::span<const uint32_t> ranks = {});

// Returns a row per rank of `passes` [rank], whose times are seconds. Returns
// InvalidArgument if the run takes no time or a rank of `ranks` (empty: all)
// does not exist.
absl::StatusOr<TimelineRows> RowsOfPasses(
    const std::string& title, std::vector<std::vector<TimelineBox>> passes,
    double makespan, std::span<const uint32_t> ranks = {});

}  // namespace weir::results

#endif  // WEIR_RESULTS_DRAW_TIMELINE_ROWS_H_
