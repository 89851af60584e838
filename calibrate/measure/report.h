// SPDX-License-Identifier: Apache-2.0
// What a calibration says, for people and for tables.
#ifndef WEIR_CALIBRATE_MEASURE_REPORT_H_
#define WEIR_CALIBRATE_MEASURE_REPORT_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "calibrate/device_profile.pb.h"
#include "calibrate/measure/calibration.pb.h"
#include "calibrate/measure/plan.h"

namespace weir {

// One line of the report, and of its CSV.
struct ReportRow {
  // "figure": the start's and the new one; "stage": a pass from its kernels
  // (and gaps) and as measured; "kernel": by the figures and as measured;
  // "memory": from the buffers and the pool's high-water mark; "memory_step":
  // bytes that context, libraries and NCCL took; "copy": of the
  // peak and as measured, bytes per second; "bandwidth": of a copy of as many
  // bytes and of a kernel that moves them; "attention": by the start's figures
  // and as measured; "verify": the limit and the error
  // of an operation; "other": seconds of any other workload, updates among
  // them; "share": a pass alone and while other parts of the card work;
  // "refused", "skipped", "throttled", "drifted": a workload.
  std::string kind;
  std::string name;
  double expected = 0, measured = 0;
  std::string note;
};

// `profile`: what AssembleProfile made of the same.
std::vector<ReportRow> MakeReport(const MeasuringPlan& plan,
                                  const Calibration& journal,
                                  const DeviceProfile& start,
                                  const DeviceProfile& profile);

// Figures, stages and both kinds of memory as tables with relative errors;
// kernels and verification as one line each; what was refused, skipped or
// flagged by name.
std::string PrintReport(const std::vector<ReportRow>& rows);

// kind,name,expected,measured,error,note; error: measured / expected - 1.
std::string PrintReportCsv(const std::vector<ReportRow>& rows);
// Whether a file with this first line is such a table.
bool IsReportHeader(absl::string_view line);

}  // namespace weir

#endif  // WEIR_CALIBRATE_MEASURE_REPORT_H_
