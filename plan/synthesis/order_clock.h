// SPDX-License-Identifier: Apache-2.0
// Incremental timing of the passes of an order.
#ifndef WEIR_PLAN_SYNTHESIS_ORDER_CLOCK_H_
#define WEIR_PLAN_SYNTHESIS_ORDER_CLOCK_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "plan/synthesis/pass_rows.h"

namespace weir::plan {

// Holds the times of the kept order and of a trial, in seconds.
class OrderClock {
 public:
  explicit OrderClock(const PassTable& table);

  // Times `rows`, which differ from the kept rows only in passes that start at
  // `since` or later in the kept order. Returns false if the rows deadlock, or
  // if their makespan is found to exceed `most`.
  bool Try(const PassRows& rows, double since,
           double most = std::numeric_limits<double>::infinity());
  // Return seconds of the last trial. sum_of_ends: of the last passes of all
  // ranks.
  double makespan() const;
  double span() const;
  double sum_of_ends() const;

  // Keeps the last trial. Requires: Try returned true.
  void Keep();
  double kept_start(int32_t number) const { return start_[number]; }
  // Clears the time of a pass that the kept order does not have.
  void Forget(int32_t number) {
    start_[number] = std::numeric_limits<double>::infinity();
  }

  // Whether I of the pass's stage and microbatch is a whole backward.
  void SetFused(int32_t number, bool fused) { fused_[number / 3] = fused; }
  bool is_fused(int32_t number) const { return fused_[number / 3]; }

 private:
  double Seconds(int32_t number) const {
    return table_.pass(number) == schedules::Op::kBackwardInput &&
                   fused_[number / 3]
               ? table_.fused_seconds(table_.stage(number))
               : table_.seconds(number);
  }
  bool RunRank(const PassRows& rows, int rank, double since, double most);

  const PassTable& table_;
  std::vector<bool> fused_;
  std::vector<double> start_, end_;              // kept
  std::vector<double> trial_start_, trial_end_;  // valid if stamped
  std::vector<int64_t> stamp_;
  int64_t trial_ = 0;
  // State of the trial; the first three by rank.
  std::vector<int> next_;
  std::vector<double> free_, first_;
  std::vector<int> ready_;
  std::vector<int32_t> timed_;
};

}  // namespace weir::plan

#endif  // WEIR_PLAN_SYNTHESIS_ORDER_CLOCK_H_
