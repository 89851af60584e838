// SPDX-License-Identifier: Apache-2.0
// An order as numbers, for searches that look at millions of them.
#ifndef WEIR_PLAN_SYNTHESIS_PASS_ROWS_H_
#define WEIR_PLAN_SYNTHESIS_PASS_ROWS_H_

#include <cstdint>
#include <vector>

#include "plan/synthesis/order_problem.h"

namespace weir {

enum class Pass : uint8_t { kForward, kInput, kWeight };  // F, I or B, W

// Passes of one stage and kind run in the order of the microbatches. That loses
// nothing: give the k-th of each kind on a stage to microbatch k; k of them
// have then run wherever k had before, and neither what is awaited nor what is
// held asks for more.
struct PassRows {
  // [rank], in order: PassTable's numbers. A whole backward is its I alone.
  std::vector<std::vector<int32_t>> ranks;
};

// What there is to know of every pass of a problem on one placement.
class PassTable {
 public:
  PassTable(const OrderProblem& problem, std::vector<int> route);

  int num_passes() const { return static_cast<int>(seconds_.size()); }
  int32_t Number(int stage, int microbatch, Pass pass) const {
    return (stage * num_microbatches_ + microbatch) * 3 +
           static_cast<int>(pass);
  }
  int stage(int32_t number) const { return number / 3 / num_microbatches_; }
  int microbatch(int32_t number) const {
    return number / 3 % num_microbatches_;
  }
  Pass pass(int32_t number) const { return static_cast<Pass>(number % 3); }
  int rank(int32_t number) const { return route_[stage(number)]; }

  double seconds(int32_t number) const { return seconds_[number]; }
  double fused_seconds(int stage) const { return fused_[stage]; }
  // The pass of another stage that must end a hop earlier, -1: none.
  int32_t before(int32_t number) const { return before_[number]; }
  int32_t after(int32_t number) const { return after_[number]; }
  double hop_before(int32_t number) const { return hop_before_[number]; }
  // From its end to the end of all that must come after it, at least.
  double tail(int32_t number) const { return tail_[number]; }
  // What a rank holds more once it has run (F: from its start).
  double held(int32_t number) const { return held_[number]; }

  const OrderProblem& problem() const { return problem_; }
  const std::vector<int>& route() const { return route_; }

  // REQUIRES: one route, this placement's; no spans. A pair that runs together
  // becomes one after the other; whole backwards become I and W where that
  // takes no longer; offloads are left out.
  PassRows RowsOf(const Schedule& schedule) const;
  Schedule ScheduleOf(const PassRows& rows) const;
  // All of one microbatch before the next.
  PassRows OneByOne() const;

 private:
  OrderProblem problem_;
  std::vector<int> route_;
  int num_microbatches_;
  std::vector<double> seconds_, fused_, hop_before_, tail_, held_;
  std::vector<int32_t> before_, after_;
};

}  // namespace weir

#endif  // WEIR_PLAN_SYNTHESIS_PASS_ROWS_H_
