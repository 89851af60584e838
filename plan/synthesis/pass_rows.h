// SPDX-License-Identifier: Apache-2.0
// Orders as numbers, for searches that try millions of them.
#ifndef WEIR_PLAN_SYNTHESIS_PASS_ROWS_H_
#define WEIR_PLAN_SYNTHESIS_PASS_ROWS_H_

#include <cstdint>
#include <vector>

#include "plan/synthesis/order_problem.h"
#include "schedules/action.h"

namespace weir::plan {

// An order in which passes of one stage and kind run in the order of
// microbatches. This loses no generality: assign the k-th pass of each kind on
// a stage to microbatch k. As many passes of each kind have then run at any
// time as before, so dependencies and limits still hold.
struct PassRows {
  // Numbers of PassTable in order, by [rank]. A whole backward is represented
  // by its I.
  std::vector<std::vector<int32_t>> ranks;
};

// The passes F, I and W of a microbatch on a stage, numbered from 0.
constexpr int32_t PassIndex(schedules::Op pass) {
  const auto op = static_cast<int32_t>(pass);
  return op == 0 ? op : op - 1;
}
constexpr schedules::Op PassOfIndex(int32_t index) {
  return static_cast<schedules::Op>(index == 0 ? index : index + 1);
}
static_assert(PassIndex(schedules::Op::kForward) == 0 &&
              PassIndex(schedules::Op::kBackwardInput) == 1 &&
              PassIndex(schedules::Op::kBackwardWeight) == 2);

// Properties of all passes of a problem on one placement.
class PassTable {
 public:
  PassTable(const OrderProblem& problem, std::vector<int> route);

  int num_passes() const { return static_cast<int>(seconds_.size()); }
  // Requires: the pass is F, I (which also stands for B) or W.
  int32_t Number(int stage, int microbatch, schedules::Op pass) const {
    return (stage * num_microbatches_ + microbatch) * 3 + PassIndex(pass);
  }
  int stage(int32_t number) const { return number / 3 / num_microbatches_; }
  int microbatch(int32_t number) const {
    return number / 3 % num_microbatches_;
  }
  schedules::Op pass(int32_t number) const { return PassOfIndex(number % 3); }
  int rank(int32_t number) const { return route_[stage(number)]; }

  double seconds(int32_t number) const { return seconds_[number]; }
  // Returns the seconds of a whole backward.
  double fused_seconds(int stage) const { return fused_[stage]; }
  // Returns the pass of another stage that must end a hop earlier; -1: none.
  int32_t before(int32_t number) const { return before_[number]; }
  int32_t after(int32_t number) const { return after_[number]; }
  // Returns the seconds of the hop from before(number).
  double hop_before(int32_t number) const { return hop_before_[number]; }
  // Returns the least seconds from the end of a pass to the end of all passes
  // that must follow it.
  double tail(int32_t number) const { return tail_[number]; }
  // Returns by how much a pass changes what its rank holds (F: at its start,
  // others: at their end).
  double held(int32_t number) const { return held_[number]; }

  const OrderProblem& problem() const { return problem_; }
  const std::vector<int>& route() const { return route_; }

  // Converts a schedule. Overlapped pairs become sequential, whole backwards
  // become I and W if that takes no longer, and offloads are dropped. Requires:
  // a single route, that of this placement; no pass of several microbatches.
  PassRows RowsOf(const schedules::Schedule& schedule) const;
  schedules::Schedule ScheduleOf(const PassRows& rows) const;
  // Returns the order that completes each microbatch before the next.
  PassRows OneByOne() const;

 private:
  OrderProblem problem_;
  std::vector<int> route_;
  int num_microbatches_;
  std::vector<double> seconds_, fused_, hop_before_, tail_, held_;
  std::vector<int32_t> before_, after_;
};

}  // namespace weir::plan

#endif  // WEIR_PLAN_SYNTHESIS_PASS_ROWS_H_
