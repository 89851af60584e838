// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/interrupt.h"
#include "base/output_file.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "base/textproto.h"
#include "calibrate/measure/assemble.h"
#include "calibrate/measure/measure.h"
#include "calibrate/measure/report.h"
#include "calibrate/profile/device_profile.h"
#include "cli/options/messages.h"
#include "cli/weir_calibrate/calibrate_commands.h"
#include "cli/weir_calibrate/measure_plan.h"
#include "cli/weir_calibrate/output_lock.h"
#include "models/model.h"

namespace weir::cli {
namespace {

// Profile used by --list, which has no GPU to query.
constexpr char kListProfile[] = "h200-sxm";
// Estimate for the whole stage in a pool, for --list.
constexpr double kMemorySeconds = 1;

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

std::string PartialOf(const RunFlags& flags) {
  return absl::StrCat(flags.out, ".partial");
}

std::string JournalOf(const RunFlags& flags) {
  return absl::StrCat(flags.out, ".journal");
}

absl::Status CheckFiles(const RunFlags& flags) {
  ReplaceOptions any;  // OutputLock::Take checks the contents of the lock file
  any.force = true;
  return weir::CheckOutputs(
      {{"--out", flags.out, ReplaceOf(flags)},
       {"the unfinished journal of --out", PartialOf(flags), ReplaceOf(flags)},
       {"the journal of --out", JournalOf(flags), ReplaceOf(flags)},
       {"the lock file of --out", OutputLock::PathOf(flags.out), any},
       {"--report", flags.report, ReplaceReport(flags)}});
}

absl::Status WriteReport(const RunFlags& flags,
                         const std::vector<calibrate::ReportRow>& rows) {
  return WriteOutput(flags.report, calibrate::PrintReportCsv(rows),
                     ReplaceReport(flags));
}

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

// Returns the plan restricted to --only. A pass keeps its operations, which are
// verified before it is timed.
absl::StatusOr<calibrate::MeasuringPlan> PlanOf(
    const RunFlags& flags, const Model& model,
    calibrate::ElementFormat format) {
  calibrate::PlanOptions options = flags.plan;
  options.format = format;
  options.num_partitions = flags.num_partitions;
  RETURN_IF_ERROR(CheckHeadSize(options, model));
  ASSIGN_OR_RETURN(calibrate::MeasuringPlan plan,
                   calibrate::MakePlan(model, options));
  absl::flat_hash_set<std::string> needed;
  for (const calibrate::PlannedPass& pass : plan.passes) {
    if (!absl::StrContains(pass.key, flags.only)) continue;
    needed.insert(pass.op_keys.begin(), pass.op_keys.end());
  }
  for (const calibrate::PlannedLoad& load : plan.loads) {
    if (!absl::StrContains(load.key, flags.only)) continue;
    const calibrate::PlannedPass& pass = plan.passes[load.pass];
    needed.insert(pass.key);
    needed.insert(pass.op_keys.begin(), pass.op_keys.end());
  }
  const auto left_out = [&](const auto& planned) {
    return !absl::StrContains(planned.key, flags.only) &&
           !needed.contains(planned.key);
  };
  std::erase_if(plan.workloads, left_out);
  std::erase_if(plan.memory, left_out);
  if (plan.workloads.empty() && plan.memory.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--only ", flags.only,
                     ": no workload name contains this (see --list)"));
  }
  return plan;
}

absl::StatusOr<int> List(const RunFlags& flags, const Model& model) {
  ASSIGN_OR_RETURN(const DeviceProfile profile,
                   calibrate::LoadDeviceProfile(
                       flags.start.empty() ? kListProfile : flags.start));
  ASSIGN_OR_RETURN(const calibrate::MeasuringPlan plan,
                   PlanOf(flags, model, flags.plan.format));
  std::string text;
  double sum = 0;
  for (const calibrate::Workload& workload : plan.workloads) {
    const double seconds = calibrate::EstimateMeasuringSeconds(
        profile, workload, plan.num_partitions);
    sum += seconds;
    absl::StrAppendFormat(&text, "%6.1f s  %s\n", seconds, workload.key);
  }
  for (const calibrate::PlannedMemory& memory : plan.memory) {
    absl::StrAppendFormat(&text, "%6.1f s  %s\n", kMemorySeconds, memory.key);
    sum += kMemorySeconds;
  }
  absl::StrAppendFormat(&text, "%d workloads, about %.0f min on a %s\n",
                        plan.workloads.size() + plan.memory.size(), sum / 60,
                        profile.name());
  return PrintAnswer(text);
}

absl::Status WriteProfile(const std::string& path, const DeviceProfile& profile,
                          const ReplaceOptions& replace) {
  RETURN_IF_ERROR(calibrate::ValidateDeviceProfile(path, profile));
  return WriteOutput(
      path,
      MarkText(
          absl::StrCat("# proto-file: calibrate/profile/device_profile.proto\n"
                       "# proto-message: weir.DeviceProfile\n",
                       PrintTextProto(profile))),
      replace);
}

// Prints why the run ended early; the journal is on disk.
ExitCode PrintEnd(const absl::Status& status, const Calibration& journal,
                  const calibrate::MeasuringPlan& plan,
                  const std::string& path) {
  const bool interrupted = absl::IsCancelled(status);
  PrintErrorMessage(
      absl::StrCat(status.message(), "\n", journal.workloads_size(), " of ",
                   plan.workloads.size(), " workloads are in ", path,
                   "; run the same command again to continue"));
  return interrupted ? InterruptExitCode() : kExitNegative;
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

// Writes profile and report. The journal is already on disk, even if something
// fails here.
absl::StatusOr<int> WriteResults(const RunFlags& flags,
                                 const calibrate::MeasuringPlan& plan,
                                 const DeviceProfile& start,
                                 const Calibration& journal) {
  ASSIGN_OR_RETURN(const DeviceProfile profile,
                   calibrate::AssembleProfile(plan, journal, start));
  RETURN_IF_ERROR(WriteProfile(flags.out, profile, ReplaceOf(flags)));
  const std::vector<calibrate::ReportRow> rows =
      calibrate::MakeReport(plan, journal, start, profile);
  if (!flags.report.empty()) {
    RETURN_IF_ERROR(WriteReport(flags, rows));
  }
  return PrintAnswer(calibrate::PrintReport(rows));
}

absl::StatusOr<int> Calibrate(const RunFlags& flags,
                              const Factories& factories) {
  ASSIGN_OR_RETURN(const Model model, models::LoadModel(flags.model));
  if (flags.list) return List(flags, model);
  RETURN_IF_ERROR(CheckFiles(flags));
  ASSIGN_OR_RETURN(const OutputLock lock, OutputLock::Take(flags.out));
  ASSIGN_OR_RETURN(const std::unique_ptr<calibrate::Bench> bench,
                   OpenBench(flags, factories));
  std::string start_name = flags.start;
  if (start_name.empty()) {
    ASSIGN_OR_RETURN(start_name,
                     calibrate::StartProfileOf(bench->provenance().gpu_name()));
  }
  ASSIGN_OR_RETURN(const DeviceProfile start,
                   calibrate::LoadDeviceProfile(start_name));
  RETURN_IF_ERROR(
      calibrate::PeakFlops(start, calibrate::Name(bench->half_format()))
          .status());
  RETURN_IF_ERROR(calibrate::CheckStart(start));
  const std::string other = calibrate::OtherStart(start, bench->provenance());
  if (!other.empty()) {
    std::fprintf(stderr, "warning: %s\n", EscapeLine(other).c_str());
  }
  ASSIGN_OR_RETURN(const calibrate::MeasuringPlan plan,
                   PlanOf(flags, model, bench->half_format()));
  const std::string path = PartialOf(flags);
  ASSIGN_OR_RETURN(Calibration journal, OpenJournal(flags, path, *bench));
  const absl::Status measured =
      MeasurePlan(flags, plan, start, {}, path, bench.get(), &journal);
  if (!measured.ok()) return PrintEnd(measured, journal, plan, path);

  const absl::StatusOr<int> written = WriteResults(flags, plan, start, journal);
  if (!written.ok()) {
    return absl::Status(
        written.status().code(),
        absl::StrCat(written.status().message(), "\nthe measurements are in ",
                     path, "; run the same command again to continue"));
  }
  if (*written != kExitOk) return *written;
  const ExitCode refused = PrintRefused(journal);
  if (refused != kExitOk) return refused;
  const std::string done = JournalOf(flags);
  std::error_code error;
  std::filesystem::rename(path, done, error);
  PrintNote(absl::StrCat("wrote ", flags.out, " and ", error ? path : done),
            OutputOf(flags));
  return kExitOk;
}

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
  ASSIGN_OR_RETURN(const DeviceProfile start,
                   calibrate::LoadDeviceProfile(kListProfile));
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

int RunCalibration(const RunFlags& flags, const Factories& factories) {
  if (!flags.list && flags.out.empty()) {
    return PrintError(absl::InvalidArgumentError(
        "weir-calibrate run: --out is missing, expected it or --list"));
  }
  const absl::StatusOr<int> code = Calibrate(flags, factories);
  return code.ok() ? *code : PrintError(code.status());
}

int CheckKernels(const RunFlags& flags, const Factories& factories) {
  const absl::StatusOr<int> code = Check(flags, factories);
  return code.ok() ? *code : PrintError(code.status());
}

}  // namespace weir::cli
