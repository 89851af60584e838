// SPDX-License-Identifier: Apache-2.0
// When the passes of an order run, found anew only where it has changed.
#ifndef WEIR_PLAN_SYNTHESIS_ORDER_CLOCK_H_
#define WEIR_PLAN_SYNTHESIS_ORDER_CLOCK_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "plan/synthesis/pass_rows.h"

namespace weir {

// Holds the times of an order that was kept, and those of a trial beside it.
class OrderClock {
 public:
  explicit OrderClock(const PassTable& table);

  // Times `rows`, which differ from those kept only in passes that start at
  // `since` or later there. False when they deadlock, or when the makespan is
  // above `most` for certain (which may not be known before the end).
  bool Try(const PassRows& rows, double since,
           double most = std::numeric_limits<double>::infinity());
  // Of the last trial.
  double makespan() const;
  double span() const;
  double sum_of_ends() const;

  // Keeps the last trial. REQUIRES: Try was true.
  void Keep();
  double kept_start(int32_t number) const { return start_[number]; }
  // Of a pass that the kept order does not have: it has no time there.
  void Forget(int32_t number) {
    start_[number] = std::numeric_limits<double>::infinity();
  }

  // Whether I of this stage and microbatch is a whole backward.
  void SetFused(int32_t number, bool fused) { fused_[number / 3] = fused; }
  bool is_fused(int32_t number) const { return fused_[number / 3]; }

 private:
  double Seconds(int32_t number) const {
    return table_.pass(number) == Pass::kInput && fused_[number / 3]
               ? table_.fused_seconds(table_.stage(number))
               : table_.seconds(number);
  }
  bool RunRank(const PassRows& rows, int rank, double since, double most);

  const PassTable& table_;
  std::vector<bool> fused_;
  std::vector<double> start_, end_;              // kept
  std::vector<double> trial_start_, trial_end_;  // valid where stamped
  std::vector<int64_t> stamp_;
  int64_t trial_ = 0;
  // Of the trial, per rank.
  std::vector<int> next_;
  std::vector<double> free_, first_;
  std::vector<int> ready_;
  std::vector<int32_t> timed_;
};

}  // namespace weir

#endif  // WEIR_PLAN_SYNTHESIS_ORDER_CLOCK_H_
