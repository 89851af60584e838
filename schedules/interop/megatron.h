// SPDX-License-Identifier: Apache-2.0
// Derives the operations that Megatron-LM posts for an order that it supports:
// its 1F1B and its interleaved 1F1B with batched, blocking sends and receives
// (batch_p2p_comm, no overlap).
#ifndef WEIR_SCHEDULES_INTEROP_MEGATRON_H_
#define WEIR_SCHEDULES_INTEROP_MEGATRON_H_

#include <optional>

#include "schedules/comm/comm_program.h"
#include "schedules/schedule.h"

namespace weir::schedules {

// Returns std::nullopt if Megatron cannot run the order. It requires forwards,
// then pairs of a forward and a backward, then backwards, with stages assigned
// to ranks cyclically on two or more ranks. Transfers posted as one batch are
// chained by CommAction::with_next, in Megatron's order within a batch: send to
// and receive from the previous rank, then send to and receive from the next
// rank. Requires: ValidateSchedule(schedule) is OK.
std::optional<CommProgram> MegatronProgram(const Schedule& schedule);

}  // namespace weir::schedules

#endif  // WEIR_SCHEDULES_INTEROP_MEGATRON_H_
