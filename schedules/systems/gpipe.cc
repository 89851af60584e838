// SPDX-License-Identifier: Apache-2.0
// GPipe (Huang et al., 2019, section 2): all forwards, then all backwards in
// reverse, the newest activations first.
#include "schedules/limits.h"
#include "schedules/systems/generators.h"

namespace weir {
namespace {

constexpr absl::string_view kName = "gpipe";

absl::Status Check(const ScheduleSpec& spec) {
  Problems problems(kName);
  CheckLimits(spec, &problems);
  CheckOneChunk(spec, &problems);
  CheckOneBatch(spec, &problems);
  return problems.ToStatus();
}

Schedule Generate(const ScheduleSpec& spec) {
  Schedule schedule = EmptySchedule(kName, spec);
  for (int rank = 0; rank < spec.num_ranks; ++rank) {
    std::vector<Action>& actions = schedule.rank_actions[rank];
    actions.reserve(2 * static_cast<size_t>(spec.num_microbatches));
    for (int k = 0; k < spec.num_microbatches; ++k) {
      actions.push_back({Op::kForward, rank, k});
    }
    for (int k = spec.num_microbatches; k-- > 0;) {
      actions.push_back({Op::kBackward, rank, k});
    }
  }
  return schedule;
}

}  // namespace

ScheduleKind GPipeKind() {
  return {.name = kName,
          .aliases = {"afab", "all-forward-all-backward", "fill-drain"},
          .paper =
              "Huang et al., GPipe: Efficient Training of Giant Neural "
              "Networks using Pipeline Parallelism, NeurIPS 2019",
          .constraints = "chunks is 1, num_batches is 1",
          .summary = "all forwards, all backwards, flush; one weight version",
          .flush = true,
          .check = Check,
          .generate = Generate};
}

}  // namespace weir
