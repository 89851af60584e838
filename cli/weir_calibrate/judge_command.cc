// SPDX-License-Identifier: Apache-2.0
// "weir-calibrate judge".
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/output_file.h"
#include "base/status_macros.h"
#include "calibrate/measure/verdict.h"
#include "cli/weir_calibrate/calibrate_commands.h"

namespace weir::cli {
namespace {

// Returns no rows, and a note on standard error, for a report that was not
// written: its checks have not run.
absl::StatusOr<std::vector<calibrate::ReportRow>> LoadReport(
    const std::string& path) {
  std::error_code error;
  if (path.empty()) return std::vector<calibrate::ReportRow>();
  if (!std::filesystem::exists(path, error)) {
    PrintNote(absl::StrCat(path, ": no such file, its checks are n/a"));
    return std::vector<calibrate::ReportRow>();
  }
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return calibrate::ReadReportCsv(path, text);
}

bool IsCsvOfChecks(absl::string_view line) {
  return line == "check,limit,value,rows,verdict";
}

absl::StatusOr<int> Judge(const JudgeFlags& flags) {
  ReplaceOptions replace;
  replace.force = flags.force;
  replace.is_own_line = IsCsvOfChecks;
  RETURN_IF_ERROR(CheckOutput(flags.out, replace));
  calibrate::CalibrationReports reports;
  ASSIGN_OR_RETURN(reports.check, LoadReport(flags.check));
  ASSIGN_OR_RETURN(reports.run, LoadReport(flags.run));
  ASSIGN_OR_RETURN(reports.repeated, LoadReport(flags.repeated));
  ASSIGN_OR_RETURN(reports.best, LoadReport(flags.best));
  const std::vector<calibrate::CalibrationCheck> checks =
      calibrate::JudgeCalibration(reports);
  if (!flags.out.empty()) {
    RETURN_IF_ERROR(
        WriteOutput(flags.out, calibrate::PrintChecksCsv(checks), replace));
  }
  const ExitCode printed =
      PrintAnswer(calibrate::PrintChecks(checks, flags.all));
  if (printed != kExitOk) return printed;
  return calibrate::AnyFails(checks) ? kExitNegative : kExitOk;
}

}  // namespace

int RunJudge(const JudgeFlags& flags) {
  const absl::StatusOr<int> code = Judge(flags);
  return code.ok() ? *code : PrintError(code.status());
}

}  // namespace weir::cli
