// SPDX-License-Identifier: Apache-2.0
#include "cli/weir_calibrate/measurement.h"

#include <unistd.h>

#include <cstdio>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/interrupt.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "calibrate/measure/journal.h"
#include "cli/options/messages.h"
#include "cli/weir_calibrate/calibrate_commands.h"
#include "cli/weir_calibrate/progress.h"

namespace weir::cli {
namespace {

// Reports an unsupported head size before minutes of measurements, not after
// them.
absl::Status CheckHeadSize(const calibrate::PlanOptions& options,
                           const Model& model) {
  const int size = static_cast<int>(model.transformer().head_size());
  if (!options.fused_attention || !model.has_transformer() || size == 64 ||
      size == 128) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(model.name(), ": head_size is ", size,
                   ", expected 64 or 128, the sizes of the measured fused "
                   "attention: give --attention unfused"));
}

std::string ShortResult(const WorkloadResult& result) {
  return result.state() == WorkloadResult::TIMED
             ? FormatSeconds(result.seconds().p50())
             : "";
}

}  // namespace

void Note(const RunFlags& flags, absl::string_view text) {
  if (!flags.quiet) PrintNote(text);
}

ReplaceOptions ReplaceOf(const RunFlags& flags) {
  ReplaceOptions options;
  options.force = flags.force;
  return options;
}

ReplaceOptions ReplaceReport(const RunFlags& flags) {
  ReplaceOptions options = ReplaceOf(flags);
  options.is_own_line = calibrate::IsReportHeader;
  return options;
}

absl::Status WriteReport(const RunFlags& flags,
                         const std::vector<calibrate::ReportRow>& rows) {
  return WriteOutput(flags.report, calibrate::PrintReportCsv(rows),
                     ReplaceReport(flags));
}

absl::StatusOr<calibrate::MeasuringPlan> PlanOf(
    const RunFlags& flags, const Model& model,
    calibrate::ElementFormat format) {
  calibrate::PlanOptions options = flags.plan;
  options.format = format;
  options.num_partitions = flags.num_partitions;
  // Only replays use partitions of a GPU.
  options.purpose = flags.purpose.value_or(flags.num_partitions > 1
                                               ? DeviceProfile::REPLAYS
                                               : DeviceProfile::FRAMEWORKS);
  RETURN_IF_ERROR(CheckHeadSize(options, model));
  ASSIGN_OR_RETURN(calibrate::MeasuringPlan plan,
                   calibrate::MakePlan(model, options));
  calibrate::SelectWorkloads(flags.only, &plan);
  if (plan.workloads.empty() && plan.memory.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--only ", flags.only,
                     ": no workload name contains this (see --list)"));
  }
  return plan;
}

absl::Status MeasurePlan(const RunFlags& flags,
                         const calibrate::MeasuringPlan& plan,
                         const DeviceProfile& start,
                         const calibrate::CalibrationOptions& options,
                         const std::string& path, calibrate::Bench* bench,
                         Calibration* journal) {
  std::map<std::string, double> estimates;
  double left = 0;
  for (const calibrate::Workload& workload : plan.workloads) {
    if (calibrate::FindResult(*journal, workload.key) != nullptr) continue;
    left += estimates[workload.key] = calibrate::EstimateMeasuringSeconds(
        start, workload, plan.num_partitions);
  }
  WorkloadProgress progress(
      flags.quiet, journal->workloads_size(),
      static_cast<int>(plan.workloads.size() + plan.memory.size()), left);
  Watchdog watchdog(flags.timeout_seconds, [&](const std::string& what) {
    const std::string kept =
        path.empty() ? ""
                     : absl::StrCat("\nthe measurements so far are in ", path,
                                    "; run the same command again to continue");
    // Ends the line that shows progress.
    if (IsStderrTerminal()) std::fputs("\n", stderr);
    PrintErrorMessage(
        absl::StrFormat("no progress for %g s in \"%s\": the GPU or its "
                        "driver is hung%s",
                        flags.timeout_seconds, what, kept));
    std::fflush(stderr);
    // Waiting for the GPU would never return.
    _exit(kExitNegative);
  });
  calibrate::CalibrationHooks hooks;
  hooks.begin = [&](const std::string& key) {
    watchdog.Begin(key);
    progress.Begin(key);
  };
  hooks.end = [&](const WorkloadResult& result) {
    progress.End(ShortResult(result), estimates[result.key()]);
  };
  hooks.stop = [&] {
    watchdog.Alive();
    return Interrupted();
  };
  if (!path.empty()) {
    hooks.save = [&](const Calibration& now) {
      return calibrate::SaveJournal(path, now);
    };
  }
  NoteInterrupt();
  absl::Status status =
      calibrate::Measure(plan, options, hooks, bench, journal);
  ExitOnInterrupt();
  return status;
}

ExitCode PrintRefused(const Calibration& journal) {
  ExitCode code = kExitOk;
  for (const WorkloadResult& result : journal.workloads()) {
    if (result.state() != WorkloadResult::REFUSED) continue;
    PrintErrorMessage(
        absl::StrCat("failed: ", result.key(), ": ", result.reason()));
    code = kExitNegative;
  }
  return code;
}

absl::StatusOr<std::unique_ptr<calibrate::Bench>> OpenBench(
    const RunFlags& flags, const Factories& factories) {
  auto bench = factories.open_bench(
      {flags.device, flags.num_candidates, flags.timeout_seconds,
       flags.num_partitions > 1 ? flags.num_partitions : 0});
  if (!bench.ok()) {
    return absl::UnavailableError(
        absl::StrCat(bench.status().message(), " (weir-calibrate doctor)"));
  }
  if ((*bench)->num_partitions() != flags.num_partitions ||
      (flags.num_partitions > 1 && (*bench)->part_multiprocessors() < 1)) {
    return absl::InternalError(
        absl::StrCat("the bench measures one of ", (*bench)->num_partitions(),
                     " partitions of ", (*bench)->part_multiprocessors(),
                     " multiprocessors, expected ", flags.num_partitions));
  }
  return bench;
}

}  // namespace weir::cli
