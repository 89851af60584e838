// SPDX-License-Identifier: Apache-2.0
// Times one workload: warms up, then samples until the median is known.
#ifndef WEIR_CALIBRATE_MEASURE_SAMPLING_H_
#define WEIR_CALIBRATE_MEASURE_SAMPLING_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "calibrate/measure/bench.h"
#include "calibrate/measure/calibration.pb.h"

namespace weir::calibrate {

// Seconds are device time of the launches themselves.
struct SamplingOptions {
  // A sample is the mean of as many launches as fill this time.
  double batch_seconds = 2e-3;
  int max_launches = 2000;
  // Warm-up: at least this many launches and seconds, and until the medians of
  // two consecutive groups of batches agree; after the maximum it is unsettled.
  int min_warmup_launches = 3;
  double min_warmup_seconds = 0.2;
  double max_warmup_seconds = 2;
  double group_seconds = 0.1;
  int group_batches = 5;  // minimum
  double settled_within = 0.01;
  // Samples: until both limits are reached, or the time is over. Checked only
  // when their number has grown by a quarter, since a check after each sample
  // stops too early.
  int min_samples = 30;
  double relative_ci = 0.01;
  double max_seconds = 3;
  int max_samples = 2000;
};

// Fills seconds, clocks and flags of `result` and returns the seconds that the
// device was busy. `stop` is polled between batches and may be empty. Returns
// Cancelled if `stop` returns true, otherwise any error of the workload.
absl::StatusOr<double> SampleWorkload(PreparedWorkload* workload,
                                      const SamplingOptions& options,
                                      const std::function<bool()>& stop,
                                      WorkloadResult* result);

// Launches a workload for this many busy seconds without a pause. Its times in
// the first and the last part of them show by how much the power limit and the
// temperature lower the clocks of steady work. Errors are those of
// SampleWorkload().
absl::StatusOr<SustainedResult> SampleSustained(
    PreparedWorkload* workload, double seconds,
    const std::function<bool()>& stop);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_MEASURE_SAMPLING_H_
