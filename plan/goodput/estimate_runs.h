// SPDX-License-Identifier: Apache-2.0
// Statistics over simulated runs.
#ifndef WEIR_PLAN_GOODPUT_ESTIMATE_RUNS_H_
#define WEIR_PLAN_GOODPUT_ESTIMATE_RUNS_H_

#include "plan/goodput/goodput.h"

namespace weir::plan {

// Returns the seconds of work without failures and checkpoints, at the
// predicted time of a step.
double WorkSecondsOf(const GoodputRequest& request);

// Returns detection, restart and load after a failure.
double RecoverySeconds(const GoodputRequest& request);

// Returns the fewest steps between checkpoints with which each is safe before
// the next one.
double LeastIntervalSteps(const GoodputRequest& request);

// Simulates request.num_runs runs with a checkpoint every `steps` steps. Each
// run draws its own step time from the interval, log-normal with a spread for
// each side.
GoodputEstimate EstimateRuns(const GoodputRequest& request, double steps);

}  // namespace weir::plan

#endif  // WEIR_PLAN_GOODPUT_ESTIMATE_RUNS_H_
