// SPDX-License-Identifier: Apache-2.0
// Runs a plan on a bench and records the results in the journal.
#ifndef WEIR_CALIBRATE_MEASURE_MEASURE_H_
#define WEIR_CALIBRATE_MEASURE_MEASURE_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "calibrate/measure/bench.h"
#include "calibrate/measure/calibration.pb.h"
#include "calibrate/measure/measurement_plan.h"
#include "calibrate/measure/sampling.h"

namespace weir::calibrate {

struct CalibrationOptions {
  SamplingOptions sampling;
  // Norm-wise limit for operations against the reference; beyond it is refused.
  double max_relative_error = 1e-2;
  bool only_verify = false;  // skips timing and memory
  // The reference GEMM is timed after this many busy seconds. If its time has
  // changed by more than `max_drift`, all workloads since the previous check
  // are measured again, up to `max_repeats` times, and then flagged. They are
  // only flagged if it was at the power limit both times.
  double reference_every_seconds = 5;
  double max_drift = 0.02;
  int max_repeats = 2;
  // Busy seconds of MeasuringPlan::sustained; 0: not measured.
  double sustained_seconds = 20;
};

struct CalibrationHooks {
  // Called before a workload, with its key, and after it, with its result.
  std::function<void(const std::string& key)> begin;
  std::function<void(const WorkloadResult& result)> end;
  // Polled between batches; true stops the calibration (Ctrl-C).
  std::function<bool()> stop;
  // Called after every workload: a kill -9 loses only what was in flight.
  std::function<absl::Status(const Calibration&)> save;
};

// Measures the workloads of the plan that are not in `journal`. Returns
// Cancelled when `hooks.stop` returns true; the bench's error when the GPU is
// lost (Unavailable, Aborted, DeadlineExceeded); or Aborted after three
// consecutive workloads and then the reference failed. In all cases the journal
// keeps the results so far. A refused or skipped workload is not an error.
// Requires: the journal is empty, or CheckSameMachine is OK.
absl::Status Measure(const MeasuringPlan& plan,
                     const CalibrationOptions& options,
                     const CalibrationHooks& hooks, Bench* bench,
                     Calibration* journal);

// Returns the number of workloads that were wrong or failed.
int NumRefused(const Calibration& journal);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_MEASURE_MEASURE_H_
