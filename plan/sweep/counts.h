// SPDX-License-Identifier: Apache-2.0
// What became of the points of a sweep.
#ifndef WEIR_PLAN_SWEEP_COUNTS_H_
#define WEIR_PLAN_SWEEP_COUNTS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "plan/sweep/sweep.h"

namespace weir {

// Of a sweep or of one shard. What ended now and before adds up to num_points,
// but for points that are not yet run.
struct SweepCounts {
  uint32_t num_points = 0;
  uint32_t num_before = 0;  // that an earlier run has ended
  uint32_t num_done = 0, num_refused = 0, num_failed = 0;  // now
  // Of those that failed: since they took longer than the time limit. Those
  // that an earlier run gave as much time do not run again.
  uint32_t num_over_time = 0, num_over_time_before = 0;
  bool any_done = false;  // now or before
  // The first of the sweep, in whatever order they end: refused now or before;
  // failed now.
  std::optional<SweepOutcome> refusal, failure;
  // Of all that are done and fit: the most samples per second, without samples
  // the shortest batch.
  SweepOutcome best;
  bool has_best = false;

  uint32_t num_ended() const {
    return num_before + num_done + num_refused + num_failed;
  }
};

void CountNow(const SweepOutcome& outcome, SweepCounts* counts);
void CountBefore(const SweepOutcome& outcome, SweepCounts* counts);

// "point 17: schedule 'nosuch' is unknown"; of a point that is not done.
std::string ReasonText(const SweepOutcome& outcome);

// "no point can run: point 0: ..." where every one is refused; else empty.
std::string NoneRanText(const SweepCounts& counts);

// "point 17, 9.41 s per batch, 54.4 samples/s, 61.3 GiB:
// parallelism.pipeline=8, schedule=1f1b".
std::string PointText(const ResolvedSweep& sweep, const SweepOutcome& outcome);

}  // namespace weir

#endif  // WEIR_PLAN_SWEEP_COUNTS_H_
