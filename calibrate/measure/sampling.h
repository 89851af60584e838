// SPDX-License-Identifier: Apache-2.0
// Times one workload: warms it up, takes samples until the median is known.
#ifndef WEIR_CALIBRATE_MEASURE_SAMPLING_H_
#define WEIR_CALIBRATE_MEASURE_SAMPLING_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "calibrate/measure/bench.h"
#include "calibrate/measure/calibration.pb.h"

namespace weir {

// Seconds are the device's own, of the launches themselves.
struct SamplingOptions {
  // A sample is the mean of as many launches as fill this time.
  double batch_seconds = 2e-3;
  int max_launches = 2000;
  // Warm-up: at least so many launches and seconds, and until the medians of
  // two consecutive groups of batches agree; then it goes on unsettled.
  int min_warmup_launches = 3;
  double min_warmup_seconds = 0.2;
  double max_warmup_seconds = 2;
  double group_seconds = 0.1;
  int group_batches = 5;  // at least
  double settled_within = 0.01;
  // Samples: until both, or the time is over. Looked at when their number has
  // grown by a quarter: who looks after each one stops too early.
  int min_samples = 30;
  double relative_ci = 0.01;
  double max_seconds = 3;
  int max_samples = 2000;
};

// Fills seconds, clocks and flags of `result`; `stop` is asked between batches
// and may be empty. Returns the seconds that the device was busy. Cancelled
// when `stop` says so; else what the workload said.
absl::StatusOr<double> SampleWorkload(PreparedWorkload* workload,
                                      const SamplingOptions& options,
                                      const std::function<bool()>& stop,
                                      WorkloadResult* result);

}  // namespace weir

#endif  // WEIR_CALIBRATE_MEASURE_SAMPLING_H_
