// SPDX-License-Identifier: Apache-2.0
// Measuring with a journal, progress, Ctrl-C and a watchdog.
#ifndef WEIR_CLI_WEIR_CALIBRATE_MEASURE_PLAN_H_
#define WEIR_CLI_WEIR_CALIBRATE_MEASURE_PLAN_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "calibrate/measure/measure.h"
#include "calibrate/profile/device_profile.pb.h"
#include "cli/weir_calibrate/calibrate_flags.h"

namespace weir::cli {

// Returns the options of notes and warnings.
OutputFlags OutputOf(const RunFlags& flags);

// Returns the journal of an earlier run, or an empty one. Workloads that were
// wrong or failed are tried again. Returns InvalidArgument if the journal is
// of another machine.
absl::StatusOr<Calibration> OpenJournal(const RunFlags& flags,
                                        const std::string& path,
                                        const calibrate::Bench& bench);

// Measures the workloads that are not in the journal and adds their results.
// Saves the journal to `path` after each one, unless `path` is empty. `start`
// estimates the time that is left. Ends the program with exit code 1 if there
// is no progress for --timeout.
absl::Status MeasurePlan(const RunFlags& flags,
                         const calibrate::MeasuringPlan& plan,
                         const DeviceProfile& start,
                         const calibrate::CalibrationOptions& options,
                         const std::string& path, calibrate::Bench* bench,
                         Calibration* journal);

}  // namespace weir::cli

#endif  // WEIR_CLI_WEIR_CALIBRATE_MEASURE_PLAN_H_
