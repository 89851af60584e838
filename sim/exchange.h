// SPDX-License-Identifier: Apache-2.0
// Where a rank stops to send and receive when transfers block.
#ifndef WEIR_SIM_EXCHANGE_H_
#define WEIR_SIM_EXCHANGE_H_

#include <cstdint>
#include <vector>

#include "schedules/schedule.h"

namespace weir {

// Positions in a rank's order after which it exchanges. There it sends what it
// has computed since the last exchange, receives what it needs until the next
// one, and goes on when all of that is through (Megatron-LM's paired
// send/receive calls): after every action; on ranks with several stages, after
// every forward-backward pair of the steady phase, as Megatron's interleaved
// schedule does, since its ranks would wait for each other in a circle between
// the two; of an overlapped pair, after both. Offloads and reloads go on
// meanwhile. Any order can be run so; the linter's model, schedules/megatron.h,
// is Megatron's own for the orders that Megatron runs, and stricter in two
// cases (tests/sim/exchange_test.cc).
struct Exchanges {
  // [position]: the exchange at which the action's output is sent: the first
  // position at or after its own.
  std::vector<int32_t> send_after;
  // [position]: the exchange at which its input is received: the last position
  // before its own; -1: before the first action.
  std::vector<int32_t> receive_after;
};

// [rank]
std::vector<Exchanges> PlanExchanges(const Schedule& schedule);

}  // namespace weir

#endif  // WEIR_SIM_EXCHANGE_H_
