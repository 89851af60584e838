// SPDX-License-Identifier: Apache-2.0
// Goodput of a job with failures and checkpoints: the part of the wall time
// that does useful work, the checkpoint interval that maximizes it, and what
// would improve it most.
#ifndef WEIR_PLAN_GOODPUT_GOODPUT_H_
#define WEIR_PLAN_GOODPUT_GOODPUT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/goodput/checkpoint.h"
#include "plan/goodput/failure_simulation.h"
#include "plan/goodput/reliability.h"

namespace weir::plan {

// The time of a step; low and high: nine times of ten lie between them.
struct StepTime {
  double seconds = 0;
  double low_seconds = 0, high_seconds = 0;  // 0: no interval
};

struct GoodputRequest {
  std::string name;  // of the job, for views
  Reliability reliability;
  JobSize job;
  StepTime step;
  double tokens_per_step = 0;  // 0: unknown
  double tokens = 0;           // to train with; 0: `work_seconds`
  double work_seconds = 30 * 86400.0;
  CheckpointSpec checkpoint;
  double interval_steps = 0;  // 0: the best one that the simulation finds
  int num_spares = -1;        // nodes; negative: always enough
  int num_elastic_replicas = 1;
  double price_per_gpu_hour = 0;  // 0: no cost
  double target_goodput = 0;      // 0: none
  uint64_t seed = 1;
  int num_runs = 200;
};

// Means over runs, relative to the mean wall time. They add up to 1.
struct TimeShares {
  double useful = 0, stalls = 0, lost = 0, recovery = 0, waiting = 0,
         degraded = 0;
};

struct Interval90 {
  double mean = 0, low = 0, high = 0;  // 5th and 95th percentile of runs
};

struct GoodputEstimate {
  double interval_steps = 0;
  Interval90 wall_seconds;
  std::vector<double> run_seconds;  // wall time of each run
  double standard_error = 0;        // of the mean wall time
  Interval90 num_failures;
  TimeShares shares;
};

// What the mean wall time would be with one figure improved.
struct Investment {
  std::string what;    // "mean time between failures: gpu"
  std::string change;  // "x 2"
  // d ln(wall time) / d ln(figure), from 10 %, and its standard error, from the
  // differences between runs with the same failures; absent for changes of a
  // kind.
  std::optional<double> elasticity;
  double elasticity_error = 0;
  double saved_seconds = 0;  // of the mean wall time, after the change
};

// A number of steps between checkpoints that the search tried, with fewer runs
// than the estimate.
struct TriedInterval {
  double steps = 0;
  double wall_seconds = 0;  // mean
  double goodput = 0;
};

struct GoodputReport {
  GoodputRequest request;
  std::vector<JobFailures> failures;
  double mean_seconds_between_failures = 0;
  CheckpointTimes checkpoint;
  double work_seconds = 0;
  // Intervals of the closed forms, with the stall of the checkpoint.
  double young_seconds = 0, daly_seconds = 0, exact_seconds = 0;
  // Goodput of Daly's equation 20 at the reported interval; absent without
  // synchronous checkpoints, or if the job waits for spares.
  std::optional<double> expected_goodput;
  GoodputEstimate estimate;  // at the reported interval
  // The steps between which the simulated time is within 0.1 % of the best.
  double flat_from_steps = 0, flat_to_steps = 0;
  std::vector<TriedInterval> tried_intervals;  // by steps
  // The most work that one failure loses, and the mean time that is not useful
  // per failure: stalls, lost work, recovery and waiting.
  double most_lost_seconds = 0, mean_loss_seconds = 0;
  // With target_goodput: the largest mean_loss_seconds that reaches it.
  std::optional<double> largest_loss_seconds;
  std::vector<Investment> investments;  // that save the most first

  double goodput() const { return estimate.shares.useful; }
};

// Returns InvalidArgument with all problems of a request, which name the flags.
absl::Status CheckGoodputRequest(const GoodputRequest& request);

// Returns InvalidArgument for a bad request and for a job that makes no
// progress. The same seed gives the same report.
absl::StatusOr<GoodputReport> PredictGoodput(const GoodputRequest& request);

}  // namespace weir::plan

#endif  // WEIR_PLAN_GOODPUT_GOODPUT_H_
