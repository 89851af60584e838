// SPDX-License-Identifier: Apache-2.0
// What Megatron-LM posts for an order that it can run: its 1F1B and its
// interleaved 1F1B with batched, blocking sends and receives
// (batch_p2p_comm, no overlap).
#ifndef WEIR_SCHEDULES_MEGATRON_H_
#define WEIR_SCHEDULES_MEGATRON_H_

#include <optional>

#include "schedules/comm_program.h"
#include "schedules/schedule.h"

namespace weir {

// Nothing when the order is not Megatron's to run: it takes forwards, then
// pairs of a forward and a backward, then backwards, of stages placed in a
// loop, on two ranks or more. Transfers posted as one batch are chained by
// CommAction::with_next, in Megatron's order within a batch: to the rank
// before, from it, to the rank after, from it. REQUIRES:
// ValidateSchedule(schedule) is OK.
std::optional<CommProgram> MegatronProgram(const Schedule& schedule);

}  // namespace weir

#endif  // WEIR_SCHEDULES_MEGATRON_H_
