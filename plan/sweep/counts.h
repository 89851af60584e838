// SPDX-License-Identifier: Apache-2.0
// Counts of a sweep's outcomes.
#ifndef WEIR_PLAN_SWEEP_COUNTS_H_
#define WEIR_PLAN_SWEEP_COUNTS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "plan/sweep/sweep.h"

namespace weir::plan {

// Counts of a sweep or of one shard. num_ended() is num_points minus the points
// that have not run yet.
struct SweepCounts {
  uint32_t num_points = 0;
  uint32_t num_before = 0;  // ended in an earlier run
  uint32_t num_done = 0, num_refused = 0, num_failed = 0;  // in this run
  // Failures by the time limit, in this run and before. Points to which an
  // earlier run gave as much time do not run again.
  uint32_t num_over_time = 0, num_over_time_before = 0;
  bool any_done = false;  // in this run or before
  // The lowest-numbered points that were refused, in this run or before, and
  // that failed in this run.
  std::optional<SweepOutcome> refusal, failure;
  // The best point that is done and fits: the most samples per second, or
  // without samples the shortest batch.
  SweepOutcome best;
  bool has_best = false;

  uint32_t num_ended() const {
    return num_before + num_done + num_refused + num_failed;
  }
};

void CountNow(const SweepOutcome& outcome, SweepCounts* counts);
void CountBefore(const SweepOutcome& outcome, SweepCounts* counts);

// Returns for example "point 17: schedule is nosuch, expected ...". Requires:
// the point is not done.
std::string ReasonText(const SweepOutcome& outcome);

// Returns "no point can run: point 0: ..." if all are refused; else empty.
std::string NoneRanText(const SweepCounts& counts);

// Returns for example "point 17, 9.41 s per batch, 54.4 samples/s, 61.3 GiB:
// parallelism.pipeline=8, schedule=1f1b".
std::string PointText(const ResolvedSweep& sweep, const SweepOutcome& outcome);

}  // namespace weir::plan

#endif  // WEIR_PLAN_SWEEP_COUNTS_H_
