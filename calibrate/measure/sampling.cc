// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measure/sampling.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/quantiles.h"
#include "base/status_macros.h"
#include "calibrate/measure/statistics.h"

namespace weir::calibrate {
namespace {

// Runs batches of one workload.
class Runner {
 public:
  Runner(PreparedWorkload* workload, const SamplingOptions& options,
         const std::function<bool()>& stop)
      : workload_(workload), options_(options), stop_(stop) {}

  absl::StatusOr<LaunchBatch> Run() {
    if (stop_ && stop_()) return absl::CancelledError("interrupted");
    ASSIGN_OR_RETURN(const LaunchBatch batch, workload_->Run(num_launches_));
    if (!(std::isfinite(batch.seconds) && batch.seconds > 0)) {
      return absl::InternalError(
          absl::StrCat("a launch took ", batch.seconds, " s"));
    }
    const double seconds = batch.seconds * num_launches_;
    device_seconds_ += seconds;
    num_launched_ += num_launches_;
    // One launch at first, as its time is unknown. Later the number changes
    // only if it is far off, because another number needs another graph, and
    // the device is idle while it is captured.
    const double fitting =
        std::clamp(std::ceil(options_.batch_seconds / batch.seconds), 1.0,
                   double(options_.max_launches));
    if (fitting > 1.5 * num_launches_ || num_launches_ > 1.5 * fitting) {
      num_launches_ = static_cast<int>(fitting);
    }
    return batch;
  }

  // Fixes the number of launches per sample.
  absl::StatusOr<LaunchBatch> RunAgain(int num_launches) {
    num_launches_ = num_launches;
    return Run();
  }

  double device_seconds() const { return device_seconds_; }
  int num_launched() const { return num_launched_; }
  int num_launches() const { return num_launches_; }

 private:
  PreparedWorkload* workload_;
  const SamplingOptions& options_;
  const std::function<bool()>& stop_;
  int num_launches_ = 1;
  int num_launched_ = 0;
  double device_seconds_ = 0;
};

// Returns true if the clocks settled.
absl::StatusOr<bool> WarmUp(const SamplingOptions& options, Runner* runner) {
  double last = 0;
  for (;;) {
    std::vector<double> group;
    const double end = runner->device_seconds() + options.group_seconds;
    while (static_cast<int>(group.size()) < options.group_batches ||
           runner->device_seconds() < end) {
      ASSIGN_OR_RETURN(const LaunchBatch batch, runner->Run());
      group.push_back(batch.seconds);
    }
    std::sort(group.begin(), group.end());
    const double median = QuantileOfSorted(group, 0.5);
    const bool settled = std::abs(median / last - 1) < options.settled_within;
    last = median;
    const bool enough = runner->num_launched() >= options.min_warmup_launches &&
                        runner->device_seconds() >= options.min_warmup_seconds;
    if (enough && settled) return true;
    if (runner->device_seconds() >= options.max_warmup_seconds) return false;
  }
}

}  // namespace

absl::StatusOr<double> SampleWorkload(PreparedWorkload* workload,
                                      const SamplingOptions& options,
                                      const std::function<bool()>& stop,
                                      WorkloadResult* result) {
  Runner runner(workload, options, stop);
  ASSIGN_OR_RETURN(const bool settled, WarmUp(options, &runner));
  result->set_unsettled(!settled);
  const double begin = runner.device_seconds();
  const int num_launches = runner.num_launches();
  std::vector<double> samples;
  size_t next_look = options.min_samples;
  DeviceState sum;
  double host = 0;
  int capped = 0, hot = 0;
  while (runner.device_seconds() - begin < options.max_seconds &&
         static_cast<int>(samples.size()) < options.max_samples) {
    ASSIGN_OR_RETURN(const LaunchBatch batch, runner.RunAgain(num_launches));
    samples.push_back(batch.seconds);
    sum.multiprocessor_hertz += batch.state.multiprocessor_hertz;
    sum.watts += batch.state.watts;
    sum.celsius += batch.state.celsius;
    host += batch.host_launch_seconds;
    capped += batch.state.power_capped;
    hot += batch.state.thermal_slowdown;
    if (samples.size() < next_look) continue;
    if (SummarizeSamples(samples).relative_ci() < options.relative_ci) break;
    next_look = samples.size() + samples.size() / 4;
  }
  const double n = static_cast<double>(samples.size());
  *result->mutable_seconds() = SummarizeSamples(samples);
  result->set_host_launch_seconds(host / n);
  result->set_multiprocessor_hertz(sum.multiprocessor_hertz / n);
  result->set_watts(sum.watts / n);
  result->set_celsius(sum.celsius / n);
  result->set_num_power_capped(capped);
  result->set_num_slowed_by_heat(hot);
  return runner.device_seconds();
}

absl::StatusOr<SustainedResult> SampleSustained(
    PreparedWorkload* workload, double seconds,
    const std::function<bool()>& stop) {
  // The clocks of a cool GPU last for tenths of a second.
  constexpr double kFirstSeconds = 0.1, kLastPart = 0.25;
  SamplingOptions options;
  options.batch_seconds = 0.1;
  Runner runner(workload, options, stop);
  std::vector<double> first, last;
  DeviceState sum;
  while (runner.device_seconds() < seconds) {
    const double begin = runner.device_seconds();
    ASSIGN_OR_RETURN(const LaunchBatch batch, runner.Run());
    if (begin < kFirstSeconds) first.push_back(batch.seconds);
    if (begin < (1 - kLastPart) * seconds) continue;
    last.push_back(batch.seconds);
    sum.multiprocessor_hertz += batch.state.multiprocessor_hertz;
    sum.watts += batch.state.watts;
    sum.celsius += batch.state.celsius;
  }
  if (first.empty() || last.empty()) {
    return absl::InternalError(absl::StrCat("a launch takes longer than ",
                                            (1 - kLastPart) * seconds, " s"));
  }
  const auto n = static_cast<double>(last.size());
  SustainedResult result;
  result.set_busy_seconds(runner.device_seconds());
  result.set_first_seconds(SummarizeSamples(first).p50());
  result.set_last_seconds(SummarizeSamples(last).p50());
  result.set_multiprocessor_hertz(sum.multiprocessor_hertz / n);
  result.set_watts(sum.watts / n);
  result.set_celsius(sum.celsius / n);
  return result;
}

}  // namespace weir::calibrate
