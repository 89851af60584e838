// SPDX-License-Identifier: Apache-2.0
// Lowers the passes of a schedule to the operations that ranks post.
#ifndef WEIR_SCHEDULES_INTEROP_LOWER_H_
#define WEIR_SCHEDULES_INTEROP_LOWER_H_

#include "absl/status/statusor.h"
#include "schedules/comm/comm_program.h"
#include "schedules/schedule.h"

namespace weir::schedules {

struct LoweringOptions {
  // Adds UNSHARD and RESHARD, so that at most this number of a rank's stages
  // are gathered at a time; 0: none. PyTorch's value is 3.
  int max_active_stages = 3;
  bool reduce_gradients = true;  // REDUCE_GRAD after a stage's last backward
  // First merges an I and its immediately following W into a B (PyTorch's
  // _merge_bw).
  bool merge_backward = false;
};

// Lowers a schedule like PyTorch's _PipelineScheduleRuntime:
// _add_unshard_reshard, then _add_reduce_grad, then _add_send_recv. Ranks take
// turns with one action each, and a receive is placed at the same time as its
// send. All ranks' transfers thus have a common order and cannot deadlock.
// Neighboring stages on one rank exchange nothing.
//
// Returns FailedPrecondition "deadlock: ..." if the passes cannot run in their
// order. Requires: ValidateSchedule(schedule) found no other problem.
absl::StatusOr<CommProgram> LowerSchedule(const Schedule& schedule,
                                          const LoweringOptions& options);

// Adds only transfers.
inline constexpr LoweringOptions kTransfersOnly = {
    .max_active_stages = 0, .reduce_gradients = false, .merge_backward = false};

// Merges every I and its immediately following W into a B.
Schedule MergeBackwards(Schedule schedule);

// Lowers a schedule without lookahead: a rank receives immediately before the
// pass that needs the data and sends immediately after the pass that computes
// it.
CommProgram LowerInProgramOrder(const Schedule& schedule);

}  // namespace weir::schedules

#endif  // WEIR_SCHEDULES_INTEROP_LOWER_H_
