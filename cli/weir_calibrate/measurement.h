// SPDX-License-Identifier: Apache-2.0
// What `run` and `check` have in common: the plan of the flags, measuring it
// with progress and watchdog, and the report.
#ifndef WEIR_CLI_WEIR_CALIBRATE_MEASUREMENT_H_
#define WEIR_CLI_WEIR_CALIBRATE_MEASUREMENT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/exit_code.h"
#include "base/output_file.h"
#include "calibrate/measure/measure.h"
#include "calibrate/measure/report.h"
#include "cli/weir_calibrate/calibrate_flags.h"
#include "models/model.pb.h"

namespace weir::cli {

// Prints a line to standard error unless --quiet.
void Note(const RunFlags& flags, absl::string_view text);

ReplaceOptions ReplaceOf(const RunFlags& flags);
ReplaceOptions ReplaceReport(const RunFlags& flags);
// Writes --report. Returns the errors of WriteOutput.
absl::Status WriteReport(const RunFlags& flags,
                         const std::vector<calibrate::ReportRow>& rows);

// Returns the plan restricted to --only. A pass keeps its operations, which are
// verified before it is timed. Returns InvalidArgument if nothing is left of
// it, and the errors of MakePlan.
absl::StatusOr<calibrate::MeasuringPlan> PlanOf(
    const RunFlags& flags, const Model& model, calibrate::ElementFormat format);

// Measures the plan with progress, Ctrl-C and watchdog. `path` is the journal;
// empty: none. Returns the errors of Measure.
absl::Status MeasurePlan(const RunFlags& flags,
                         const calibrate::MeasuringPlan& plan,
                         const DeviceProfile& start,
                         const calibrate::CalibrationOptions& options,
                         const std::string& path, calibrate::Bench* bench,
                         Calibration* journal);

// Prints the workloads that were wrong or failed; returns the exit code.
ExitCode PrintRefused(const Calibration& journal);

}  // namespace weir::cli

#endif  // WEIR_CLI_WEIR_CALIBRATE_MEASUREMENT_H_
