// SPDX-License-Identifier: Apache-2.0
// Numbering of microbatches and classes of passes in shortened schedules.
#ifndef WEIR_SIM_FAST_LANES_H_
#define WEIR_SIM_FAST_LANES_H_

#include <array>

#include "schedules/schedule.h"

namespace weir::sim {

// The numbering of microbatches; see ShortenedSchedule::num_lanes.
struct Lanes {
  int count = 1, length = 1;

  explicit Lanes(const schedules::Schedule& schedule)
      : length(schedule.num_microbatches) {
    const int turn = schedule.microbatches_per_route_turn;
    if (schedule.num_routes() < 2 || turn * schedule.num_routes() != length) {
      return;
    }
    count = schedule.num_routes();
    length = turn;
  }
  int lane(int microbatch) const {
    return count == 1 ? 0 : microbatch / length;
  }
  int index(int microbatch) const {
    return count == 1 ? microbatch : microbatch % length;
  }
  // Returns the new number of a microbatch when every lane becomes longer by
  // `more` (shorter if negative) and the microbatch is shifted by `moved` in
  // its lane.
  int Renumber(int microbatch, int more, int moved) const {
    return microbatch + lane(microbatch) * more + moved;
  }
};

// Returns the operations whose stretch passes of `op` belong to if none of
// these passes is in a stretch, for schedules that split backwards only
// occasionally (DualPipe).
inline std::array<schedules::Op, 2> OthersLike(schedules::Op op) {
  switch (op) {
    case schedules::Op::kBackward:
      return {schedules::Op::kBackwardInput, schedules::Op::kBackwardInput};
    case schedules::Op::kBackwardInput:
      return {schedules::Op::kBackward, schedules::Op::kBackward};
    case schedules::Op::kBackwardWeight:
      return {schedules::Op::kBackward, schedules::Op::kBackwardInput};
    default:
      return {op, op};
  }
}

}  // namespace weir::sim

#endif  // WEIR_SIM_FAST_LANES_H_
