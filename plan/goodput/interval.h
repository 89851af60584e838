// SPDX-License-Identifier: Apache-2.0
// Closed forms for checkpoints of a job whose times between failures are
// exponential with mean M:
//
//   Young, A first order approximation to the optimum checkpoint interval,
//     CACM 17(9), 1974: sqrt(2 delta M)
//   Daly, A higher order estimate of the optimum checkpoint interval for
//     restart dumps, FGCS 22(3), 2006: equations 20 (expected time) and 37
//     (optimum)
//
// The interval is the time of work between two checkpoints; delta is the time
// that a checkpoint stalls the job. All values are seconds.
#ifndef WEIR_PLAN_GOODPUT_INTERVAL_H_
#define WEIR_PLAN_GOODPUT_INTERVAL_H_

namespace weir::plan {

// Requires of all functions: stall_seconds > 0, mean_seconds > 0.
double YoungInterval(double stall_seconds, double mean_seconds);

// sqrt(2 delta M) (1 + sqrt(delta / 2M) / 3 + (delta / 2M) / 9) - delta, or M
// if delta >= 2M.
double DalyInterval(double stall_seconds, double mean_seconds);

// The minimum of ExpectedSeconds over the interval, where
// (1 - tau / M) exp(tau / M) = exp(-delta / M). Does not depend on the restart.
double ExactInterval(double stall_seconds, double mean_seconds);

// Returns the expected time of `work_seconds` of work with synchronous
// checkpoints, the last one at its end:
//
//   M exp(R / M) (exp((tau + delta) / M) - 1) work / tau
//
// Failures happen during checkpoints and restarts, too. Requires:
// `interval_seconds` divides the work.
double ExpectedSeconds(double work_seconds, double interval_seconds,
                       double stall_seconds, double restart_seconds,
                       double mean_seconds);

// Returns the largest mean loss per failure (detection, restart, lost work and
// the checkpoints between two failures) with which a job does useful work for
// this part of the time: (1 - useful_part) M.
double LargestLossSeconds(double useful_part, double mean_seconds);

}  // namespace weir::plan

#endif  // WEIR_PLAN_GOODPUT_INTERVAL_H_
