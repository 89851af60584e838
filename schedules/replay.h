// SPDX-License-Identifier: Apache-2.0
// Walks a schedule in an order that its dependencies allow.
#ifndef WEIR_SCHEDULES_REPLAY_H_
#define WEIR_SCHEDULES_REPLAY_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "schedules/schedule.h"

namespace weir {

// The action of another stage that `action` waits for, as a forward (of the
// stage before) or an input gradient (of the stage after; kBackward and
// kBackwardInput both make one). Nothing for the first forward, the last
// stage's backward and every W: these follow an action of their own stage.
std::optional<Action> AwaitedAction(const Schedule& schedule,
                                    const Action& action);

// Calls visit(rank, position) once for every action that can run, each after
// the action before it on its rank and the one it awaits. Returns how many
// actions of each rank ran: fewer than it has where the order deadlocks.
// REQUIRES: stages, microbatches and ranks are in range, every action is once
// in the schedule and on the rank of its stage.
std::vector<int32_t> Replay(
    const Schedule& schedule,
    const std::function<void(int rank, int32_t position)>& visit);

}  // namespace weir

#endif  // WEIR_SCHEDULES_REPLAY_H_
