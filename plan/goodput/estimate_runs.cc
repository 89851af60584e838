// SPDX-License-Identifier: Apache-2.0
#include "plan/goodput/estimate_runs.h"

#include <algorithm>
#include <cmath>

#include "base/quantiles.h"

namespace weir::plan {
namespace {

// Standard deviations from the mean to the 5th and the 95th percentile.
constexpr double kNineOfTen = 1.6448536269514722;

// Returns the step time of a run relative to the predicted one.
double StepFactor(const StepTime& step, double normal) {
  const double end = normal < 0 ? step.low_seconds : step.high_seconds;
  if (!(end > 0)) return 1;
  return std::exp(std::abs(normal) / kNineOfTen * std::log(end / step.seconds));
}

Interval90 IntervalOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  Interval90 interval;
  for (const double value : values) interval.mean += value;
  interval.mean /= static_cast<double>(values.size());
  interval.low = QuantileOfSorted(values, 0.05);
  interval.high = QuantileOfSorted(values, 0.95);
  return interval;
}

}  // namespace

double WorkSecondsOf(const GoodputRequest& request) {
  if (request.tokens > 0 && request.tokens_per_step > 0) {
    return std::ceil(request.tokens / request.tokens_per_step) *
           request.step.seconds;
  }
  return request.work_seconds;
}

double RecoverySeconds(const GoodputRequest& request) {
  return request.reliability.detection_seconds() +
         request.reliability.restart_seconds() +
         TimesOfCheckpoint(request.checkpoint, request.job).load_seconds;
}

double LeastIntervalSteps(const GoodputRequest& request) {
  const CheckpointTimes times =
      TimesOfCheckpoint(request.checkpoint, request.job);
  // Also for runs with the fastest steps that are likely to be drawn.
  const double step = request.step.low_seconds > 0
                          ? std::pow(request.step.low_seconds, 3) /
                                std::pow(request.step.seconds, 2)
                          : request.step.seconds;
  return std::max(std::ceil((times.safe_seconds - times.stall_seconds) / step),
                  1.0);
}

double StandardErrorOfMean(const std::vector<double>& values) {
  double squares = 0;
  for (size_t i = 1; i < values.size(); ++i) {
    squares += (values[i] - values[i - 1]) * (values[i] - values[i - 1]);
  }
  const double count = static_cast<double>(values.size());
  return std::sqrt(squares / (2 * (count - 1) * count));
}

GoodputEstimate EstimateRuns(const GoodputRequest& request, double steps) {
  RunModel model;
  model.failures = FailuresOfJob(request.reliability, request.job);
  model.checkpoint = TimesOfCheckpoint(request.checkpoint, request.job);
  model.detection_seconds = request.reliability.detection_seconds();
  model.restart_seconds = request.reliability.restart_seconds();
  model.num_spares = request.num_spares;
  model.num_elastic_replicas = request.num_elastic_replicas;

  GoodputEstimate estimate;
  estimate.interval_steps = steps;
  std::vector<double> failures;
  RunTimes sum;
  for (int run = 0; run < request.num_runs; ++run) {
    const double factor = StepFactor(
        request.step, NormalNumber(request.seed, run, request.num_runs));
    model.work_seconds = WorkSecondsOf(request) * factor;
    model.interval_seconds = std::max(
        steps * request.step.seconds * factor,
        model.checkpoint.safe_seconds - model.checkpoint.stall_seconds);
    const RunTimes times = SimulateRun(model, request.seed, run);
    estimate.run_seconds.push_back(times.wall_seconds());
    failures.push_back(times.num_failures);
    sum.useful_seconds += times.useful_seconds;
    sum.stall_seconds += times.stall_seconds;
    sum.lost_seconds += times.lost_seconds;
    sum.recovery_seconds += times.recovery_seconds;
    sum.waiting_seconds += times.waiting_seconds;
    sum.degraded_seconds += times.degraded_seconds;
  }
  const double total = sum.wall_seconds();
  estimate.wall_seconds = IntervalOf(estimate.run_seconds);
  estimate.num_failures = IntervalOf(failures);
  estimate.standard_error = StandardErrorOfMean(estimate.run_seconds);
  estimate.shares = {.useful = sum.useful_seconds / total,
                     .stalls = sum.stall_seconds / total,
                     .lost = sum.lost_seconds / total,
                     .recovery = sum.recovery_seconds / total,
                     .waiting = sum.waiting_seconds / total,
                     .degraded = sum.degraded_seconds / total};
  return estimate;
}

}  // namespace weir::plan
