// SPDX-License-Identifier: Apache-2.0
// Breadth-first (Lamy-Poirier, 2023, section 3): GPipe over each of a rank's
// stages in turn. A stage's weights are gathered once for all forwards and once
// for all backwards, and its gradient is reduced once.
#include "schedules/limits.h"
#include "schedules/options.h"
#include "schedules/systems/generators.h"

namespace weir::schedules {
namespace {

constexpr absl::string_view kBreadthFirstName = "breadth-first";

absl::Status CheckBreadthFirst(const ScheduleSpec& spec) {
  Problems problems(kBreadthFirstName);
  CheckLimits(spec, &problems);
  CheckOneBatch(spec, &problems);
  BackwardsReversed(spec, &problems);
  return problems.ToStatus();
}

Schedule GenerateBreadthFirst(const ScheduleSpec& spec) {
  return StageByStage(kBreadthFirstName, spec);
}

}  // namespace

Schedule StageByStage(absl::string_view name, const ScheduleSpec& spec) {
  Problems none(name);
  const bool reversed = BackwardsReversed(spec, &none);
  Schedule schedule = EmptySchedule(name, spec);
  const int m = spec.num_microbatches;
  for (int rank = 0; rank < spec.num_ranks; ++rank) {
    std::vector<Action>& actions = schedule.rank_actions[rank];
    actions.reserve(2 * static_cast<size_t>(spec.num_chunks) * m);
    for (int chunk = 0; chunk < spec.num_chunks; ++chunk) {
      const int stage = chunk * spec.num_ranks + rank;
      for (int k = 0; k < m; ++k) actions.push_back({Op::kForward, stage, k});
    }
    for (int chunk = spec.num_chunks; chunk-- > 0;) {
      const int stage = chunk * spec.num_ranks + rank;
      for (int k = 0; k < m; ++k) {
        actions.push_back({Op::kBackward, stage, reversed ? m - 1 - k : k});
      }
    }
  }
  return schedule;
}

ScheduleKind BreadthFirstKind() {
  return {
      .name = kBreadthFirstName,
      .aliases = {"looped-bfs", "bfs", "looped-gpipe"},
      .paper = "Lamy-Poirier, Breadth-First Pipeline Parallelism, MLSys 2023",
      .constraints = "num_batches is 1",
      .summary =
          "all forwards (backwards) of a stage before those of the rank's next "
          "stage, flush; one weight version",
      .flush = true,
      .options = {BackwardOrderOption()},
      .check = CheckBreadthFirst,
      .generate = GenerateBreadthFirst};
}

}  // namespace weir::schedules
