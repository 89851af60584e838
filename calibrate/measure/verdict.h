// SPDX-License-Identifier: Apache-2.0
// Judges the reports of a calibration: each check with its limit. Limits apply
// to medians, 95th percentiles and sums, since the worst of hundreds of short
// kernels is an outlier on every GPU.
#ifndef WEIR_CALIBRATE_MEASURE_VERDICT_H_
#define WEIR_CALIBRATE_MEASURE_VERDICT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "calibrate/measure/report.h"

namespace weir::calibrate {

// Kernels below this are not judged by their time: a launch and the resolution
// of events are some percent of it.
inline constexpr double kLeastJudgedSeconds = 20e-6;

// The reports to judge; a report that is empty did not run.
struct CalibrationReports {
  // `weir-calibrate check`.
  std::vector<ReportRow> check;
  // Two equal runs of `weir-calibrate run`.
  std::vector<ReportRow> run, repeated;
  // A run of GEMMs only, with as many candidates as possible (--candidates).
  std::vector<ReportRow> best;
};

struct JudgedRow {
  std::string name;
  double value = 0;
};

struct CalibrationCheck {
  enum class Verdict {
    kHolds,
    kFails,
    kReported,  // has no limit
    kNotRun,    // none of its rows was measured
  };
  std::string name;
  double limit = 0;  // largest value that holds; 0 for kReported
  double value = 0;
  int num_rows = 0;
  Verdict verdict = Verdict::kNotRun;
  std::vector<JudgedRow> worst;  // at most ten, worst first
};

// Returns the checks, always the same ones in the same order:
// - wrong or failed operations: 0;
// - error of an operation against double precision: the worst, 1e-2;
// - difference between the two runs, kernels from 20 us: median 0.5 %, 95th
//   percentile 2 %;
// - GEMMs of the model against the fastest candidates: sums, 3 %;
// - loss of bandwidth of memory-bound kernels from 20 us against copies of as
//   many bytes: median 25 %, 95th percentile 50 %;
// - attention against the start profile (published figures of other kernels):
//   median ratio, without limit;
// - stages, forward and backward together, against the sum of their kernels:
//   median 3 %, 95th percentile 5 %;
// - memory of a stage against the sum of its buffers: median 0.5 %, 95th
//   percentile 1 %.
std::vector<CalibrationCheck> JudgeCalibration(
    const CalibrationReports& reports);

// Returns a table, and the worst rows of failed checks (`all`: of all checks).
std::string PrintChecks(const std::vector<CalibrationCheck>& checks, bool all);
// Returns CSV with the columns check, limit, value, rows, verdict.
std::string PrintChecksCsv(const std::vector<CalibrationCheck>& checks);

// Returns true if a check fails, or none was run.
bool AnyFails(const std::vector<CalibrationCheck>& checks);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_MEASURE_VERDICT_H_
