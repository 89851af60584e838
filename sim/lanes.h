// SPDX-License-Identifier: Apache-2.0
// How shortened schedules number microbatches and class passes.
#ifndef WEIR_SIM_LANES_H_
#define WEIR_SIM_LANES_H_

#include <array>

#include "schedules/schedule.h"

namespace weir {

// How microbatches are numbered, see ShortenedSchedule::num_lanes.
struct Lanes {
  int count = 1, length = 1;

  explicit Lanes(const Schedule& schedule) : length(schedule.num_microbatches) {
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
  // Its number when every lane is longer (or shorter) by `more`, and it itself
  // is moved in its lane.
  int Renumber(int microbatch, int more, int moved) const {
    return microbatch + lane(microbatch) * more + moved;
  }
};

// Where a schedule splits backwards only now and then (DualPipe), the passes
// that are never in a stretch belong to that of the others.
inline std::array<Op, 2> OthersLike(Op op) {
  switch (op) {
    case Op::kBackward:
      return {Op::kBackwardInput, Op::kBackwardInput};
    case Op::kBackwardInput:
      return {Op::kBackward, Op::kBackward};
    case Op::kBackwardWeight:
      return {Op::kBackward, Op::kBackwardInput};
    default:
      return {op, op};
  }
}

}  // namespace weir

#endif  // WEIR_SIM_LANES_H_
