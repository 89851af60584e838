// SPDX-License-Identifier: Apache-2.0
// Pipelines over edge devices. EdgePipe (Hu et al., 2022) is for inference:
// forwards only, as fast as the slowest stage or link. AccEPT (Chen et al.,
// 2024) trains in 1F1B with a flush and compresses transfers. Their unequal
// devices and their partition are part of the costs.
#include "schedules/limits.h"
#include "schedules/systems/generators.h"

namespace weir::schedules {
namespace {

constexpr absl::string_view kEdgePipe = "edgepipe";
constexpr absl::string_view kAccEPT = "accept";

absl::Status CheckEdgePipe(const ScheduleSpec& spec) {
  return CheckWithoutFlush(kEdgePipe, spec).ToStatus();
}

absl::Status CheckAccEPT(const ScheduleSpec& spec) {
  Problems problems(kAccEPT);
  CheckLimits(spec, &problems);
  CheckOneChunk(spec, &problems);
  CheckOneBatch(spec, &problems);
  return problems.ToStatus();
}

Schedule GenerateEdgePipe(const ScheduleSpec& spec) {
  Schedule schedule = EmptySchedule(kEdgePipe, spec);
  schedule.flush = false;
  schedule.forward_only = true;
  for (int rank = 0; rank < spec.num_ranks; ++rank) {
    std::vector<Action>& actions = schedule.rank_actions[rank];
    actions.reserve(schedule.total_microbatches());
    for (int k = 0; k < schedule.total_microbatches(); ++k) {
      actions.push_back({Op::kForward, rank, k});
    }
  }
  return schedule;
}

Schedule GenerateAccEPT(const ScheduleSpec& spec) {
  Schedule schedule = OneFOneBSchedule(kAccEPT, spec);
  schedule.compressed_transfers = true;
  return schedule;
}

}  // namespace

ScheduleKind EdgePipeKind() {
  return {.name = kEdgePipe,
          .aliases = {"pipeedge", "forward-only", "inference"},
          .paper =
              "Hu et al., Pipeline Parallelism for Inference on Heterogeneous "
              "Edge Computing, 2021",
          .constraints = "chunks is 1",
          .summary = "inference: only forwards, no gradients, no updates",
          .flush = false,
          .check = CheckEdgePipe,
          .generate = GenerateEdgePipe};
}

ScheduleKind AccEPTKind() {
  return {.name = kAccEPT,
          .aliases = {"accept-1f1b"},
          .paper =
              "Chen et al., AccEPT: An Acceleration Scheme for Speeding Up "
              "Edge Pipeline-parallel Training, TMC 2024",
          .constraints = "chunks is 1, num_batches is 1",
          .summary =
              "1F1B with a flush after every batch, compressed transfers; one "
              "weight version",
          .flush = true,
          .check = CheckAccEPT,
          .generate = GenerateAccEPT};
}

}  // namespace weir::schedules
