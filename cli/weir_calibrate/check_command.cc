// SPDX-License-Identifier: Apache-2.0
// "weir-calibrate check".
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/interrupt.h"
#include "base/status_macros.h"
#include "calibrate/measure/assemble.h"
#include "calibrate/profile/device_profile.h"
#include "cli/weir_calibrate/calibrate_commands.h"
#include "cli/weir_calibrate/measurement.h"
#include "models/model.h"

namespace weir::cli {
namespace {

absl::StatusOr<int> Check(const RunFlags& flags, const Factories& factories) {
  ASSIGN_OR_RETURN(const Model model, models::LoadModel(flags.model));
  RETURN_IF_ERROR(CheckOutput(flags.report, ReplaceReport(flags)));
  ASSIGN_OR_RETURN(const std::unique_ptr<calibrate::Bench> bench,
                   OpenBench(flags, factories));
  ASSIGN_OR_RETURN(calibrate::MeasuringPlan plan,
                   PlanOf(flags, model, bench->half_format()));
  std::erase_if(plan.workloads, [](const calibrate::Workload& workload) {
    return workload.kind != calibrate::Workload::Kind::kOp;
  });
  plan.memory.clear();
  std::string warning;
  ASSIGN_OR_RETURN(const std::string start_name,
                   calibrate::StartProfileFor(
                       bench->provenance(),
                       calibrate::Name(bench->half_format()), &warning));
  ASSIGN_OR_RETURN(const DeviceProfile start,
                   calibrate::LoadDeviceProfile(start_name));
  calibrate::CalibrationOptions measure;
  measure.only_verify = true;
  Calibration journal;
  const absl::Status checked =
      MeasurePlan(flags, plan, start, measure, "", bench.get(), &journal);
  std::string text;
  int num_right = 0;
  for (const WorkloadResult& result : journal.workloads()) {
    const bool right = result.state() == WorkloadResult::VERIFIED;
    num_right += right;
    absl::StrAppendFormat(
        &text, "%-7s %8.2g  %s%s%s\n",
        right
            ? "right"
            : (result.state() == WorkloadResult::SKIPPED ? "skipped" : "wrong"),
        result.relative_error(), result.key(),
        result.reason().empty() ? "" : ": ", result.reason());
  }
  absl::StrAppend(&text, num_right, " of ", plan.workloads.size(),
                  " operations are correct\n");
  if (!flags.report.empty()) {
    const std::vector<calibrate::ReportRow> rows =
        calibrate::MakeReport(plan, journal, start, start);
    RETURN_IF_ERROR(WriteReport(flags, rows));
  }
  const ExitCode printed = PrintAnswer(text);
  if (printed != kExitOk) return printed;
  if (!checked.ok()) {
    PrintError(checked);
    return absl::IsCancelled(checked) ? InterruptExitCode() : kExitNegative;
  }
  return PrintRefused(journal);
}

}  // namespace

int CheckKernels(const RunFlags& flags, const Factories& factories) {
  const absl::StatusOr<int> code = Check(flags, factories);
  return code.ok() ? *code : PrintError(code.status());
}

}  // namespace weir::cli
