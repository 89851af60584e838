// SPDX-License-Identifier: Apache-2.0
// Runs a plan on a bench and keeps the journal.
#ifndef WEIR_CALIBRATE_MEASURE_MEASURE_H_
#define WEIR_CALIBRATE_MEASURE_MEASURE_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "calibrate/measure/bench.h"
#include "calibrate/measure/calibration.pb.h"
#include "calibrate/measure/plan.h"
#include "calibrate/measure/sampling.h"

namespace weir {

struct CalibrationOptions {
  SamplingOptions sampling;
  // Of operations against the reference, norm-wise; more is refused.
  double max_relative_error = 1e-2;
  bool only_verify = false;  // times nothing, measures no memory
  // The reference product is timed after so many busy seconds. Where it has
  // moved by more than `max_drift`, all since the last time is measured again,
  // so often, and then flagged.
  double reference_every_seconds = 5;
  double max_drift = 0.02;
  int max_repeats = 2;
};

struct CalibrationHooks {
  // Before a workload (what it is), and after it (its result).
  std::function<void(const std::string& key)> begin;
  std::function<void(const WorkloadResult& result)> end;
  // Asked between batches: Ctrl-C.
  std::function<bool()> stop;
  // After every workload: a kill -9 loses only what was in flight.
  std::function<absl::Status(const Calibration&)> save;
};

// Measures what the plan has and `journal` has not. Cancelled when told to
// stop; whatever the bench says when the GPU is lost (Unavailable, Aborted,
// DeadlineExceeded), or after three workloads in a row broke and then the
// reference: all of it with the journal as it stands. A workload that is
// refused or skipped is no error here.
// REQUIRES: the journal is empty, or CheckSameMachine is OK.
absl::Status Measure(const MeasuringPlan& plan,
                     const CalibrationOptions& options,
                     const CalibrationHooks& hooks, Bench* bench,
                     Calibration* journal);

// Workloads that were wrong or broke.
int NumRefused(const Calibration& journal);

}  // namespace weir

#endif  // WEIR_CALIBRATE_MEASURE_MEASURE_H_
