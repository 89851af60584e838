// SPDX-License-Identifier: Apache-2.0
// The points at which a rank stops to send and receive when transfers block.
#ifndef WEIR_SIM_GRAPH_EXCHANGE_H_
#define WEIR_SIM_GRAPH_EXCHANGE_H_

#include <cstdint>
#include <vector>

#include "schedules/schedule.h"

namespace weir::sim {

// Positions in a rank's order after which it exchanges data. At an exchange a
// rank sends what it has computed since the previous one, receives what it
// needs until the next one, and continues when all of these transfers have
// completed (Megatron-LM's paired send/receive calls). A rank exchanges after
// every action, except that it does so
// - after every forward-backward pair of the steady phase if it has several
//   stages, as in Megatron's interleaved schedule, since ranks would wait for
//   each other in a cycle between the two;
// - after both actions of an overlapped pair.
// Offloads and reloads continue during an exchange. Any order can be run this
// way. The linter's model, schedules/interop/megatron.h, is Megatron's own for
// the orders that Megatron runs, and stricter in two cases
// (tests/sim/graph/exchange_test.cc).
struct Exchanges {
  // [position]: the exchange at which the action's output is sent, which is the
  // first one at or after its own position.
  std::vector<int32_t> send_after;
  // [position]: the exchange at which its input is received, which is the last
  // one before its own position; -1: before the first action.
  std::vector<int32_t> receive_after;
};

// Returns the exchanges of each rank.
std::vector<Exchanges> PlanExchanges(const schedules::Schedule& schedule);

}  // namespace weir::sim

#endif  // WEIR_SIM_GRAPH_EXCHANGE_H_
