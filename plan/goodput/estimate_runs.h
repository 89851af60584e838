// SPDX-License-Identifier: Apache-2.0
// Statistics over simulated runs.
#ifndef WEIR_PLAN_GOODPUT_ESTIMATE_RUNS_H_
#define WEIR_PLAN_GOODPUT_ESTIMATE_RUNS_H_

#include <vector>

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
// run has its own step time from the interval, log-normal with a spread for
// each side and stratified over the runs.
GoodputEstimate EstimateRuns(const GoodputRequest& request, double steps);

// Returns the standard error of the mean from the differences between
// neighbors, which have similar step times (Wolter, Introduction to Variance
// Estimation, 2007, chapter 8: one unit per stratum). Requires: two values.
double StandardErrorOfMean(const std::vector<double>& values);

}  // namespace weir::plan

#endif  // WEIR_PLAN_GOODPUT_ESTIMATE_RUNS_H_
