// SPDX-License-Identifier: Apache-2.0
// Reports of a calibration as text and CSV.
#ifndef WEIR_CALIBRATE_MEASURE_REPORT_H_
#define WEIR_CALIBRATE_MEASURE_REPORT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "calibrate/measure/calibration.pb.h"
#include "calibrate/measure/measurement_plan.h"
#include "calibrate/profile/device_profile.pb.h"

namespace weir::calibrate {

// One line of the report, and of its CSV.
struct ReportRow {
  // "figure": parameter at the start and now; "stage": a pass predicted from
  // its kernels (and gaps) and measured; "kernel": an operation of the model,
  // predicted from the parameters and measured; "grid": the same for an
  // operation that is only measured for fits; "memory": from the buffers and
  // the pool's high-water mark; "memory_step": bytes taken by context,
  // libraries and NCCL; "copy": bytes per second, peak and measured;
  // "bandwidth": of a copy of the same bytes and of a kernel that moves them;
  // "attention": predicted from the start's parameters and measured; "verify":
  // the limit and the error of an operation; "other": seconds of any other
  // workload, including updates; "share": a pass alone and while other
  // partitions of the GPU work; "refused", "skipped", "throttled", "drifted": a
  // workload.
  std::string kind;
  std::string name;
  double expected = 0, measured = 0;
  std::string note;
};

// Requires: `profile` is the result of AssembleProfile() for the same
// arguments.
std::vector<ReportRow> MakeReport(const MeasuringPlan& plan,
                                  const Calibration& journal,
                                  const DeviceProfile& start,
                                  const DeviceProfile& profile);

// Returns parameters, stages and both kinds of memory as tables with relative
// errors; kernels and verification as one line each; and the names of all
// refused, skipped or flagged workloads.
std::string PrintReport(const std::vector<ReportRow>& rows);

// Returns CSV: kind,name,expected,measured,error,note, where error is measured
// / expected - 1.
std::string PrintReportCsv(const std::vector<ReportRow>& rows);
// Reads such a table. Returns InvalidArgument with line and column.
absl::StatusOr<std::vector<ReportRow>> ReadReportCsv(absl::string_view label,
                                                     absl::string_view text);
// Returns true if a file with this first line is such a table.
bool IsReportHeader(absl::string_view line);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_MEASURE_REPORT_H_
