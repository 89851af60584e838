// SPDX-License-Identifier: Apache-2.0
// From the passes of a schedule to what its ranks post.
#ifndef WEIR_SCHEDULES_LOWER_H_
#define WEIR_SCHEDULES_LOWER_H_

#include "absl/status/statusor.h"
#include "schedules/comm_program.h"
#include "schedules/schedule.h"

namespace weir {

struct LoweringOptions {
  // UNSHARD and RESHARD, so that at most so many stages of a rank are gathered
  // at a time; 0: none. PyTorch's is 3.
  int max_active_stages = 3;
  bool reduce_gradients = true;  // REDUCE_GRAD after a stage's last backward
  // An I with its own W right behind becomes a B first (PyTorch's _merge_bw).
  bool merge_backward = false;
};

// As PyTorch's _PipelineScheduleRuntime does: _add_unshard_reshard, then
// _add_reduce_grad, then _add_send_recv. A receive stands where its sender was
// placed when ranks take turns, one action each: all ranks' transfers are in
// one common order, so that none can hang on another. Stages next to each other
// on one rank exchange nothing.
//
// FailedPrecondition "deadlock: ..." when the passes cannot run in their order.
// REQUIRES: ValidateSchedule(schedule) found nothing but that.
absl::StatusOr<CommProgram> LowerSchedule(const Schedule& schedule,
                                          const LoweringOptions& options);

// Transfers only.
inline constexpr LoweringOptions kTransfersOnly = {
    .max_active_stages = 0, .reduce_gradients = false, .merge_backward = false};

// An I with its own W right behind becomes a B.
Schedule MergeBackwards(Schedule schedule);

// The rule without foresight: a rank receives right before the pass that needs
// it and sends right after the pass that made it.
CommProgram LowerInProgramOrder(const Schedule& schedule);

}  // namespace weir

#endif  // WEIR_SCHEDULES_LOWER_H_
