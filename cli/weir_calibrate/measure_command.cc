// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/interrupt.h"
#include "base/output_file.h"
#include "base/status_macros.h"
#include "base/textproto.h"
#include "base/version.h"
#include "calibrate/measure/assemble.h"
#include "calibrate/measure/journal.h"
#include "calibrate/measure/measure.h"
#include "calibrate/measure/report.h"
#include "calibrate/profile/device_profile.h"
#include "cli/options/messages.h"
#include "cli/weir_calibrate/calibrate_commands.h"
#include "cli/weir_calibrate/measurement.h"
#include "cli/weir_calibrate/output_lock.h"
#include "models/model.h"

namespace weir::cli {
namespace {

// Estimate for the whole stage in a pool, for --list.
constexpr double kMemorySeconds = 1;

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

// Returns the profile of this machine's GPU for estimates of time; without a
// GPU, any that has the format.
absl::StatusOr<DeviceProfile> ProfileForList(const RunFlags& flags,
                                             const Factories& factories) {
  if (!flags.start.empty()) return calibrate::LoadDeviceProfile(flags.start);
  const absl::StatusOr<Provenance> gpu = factories.identify(flags.device);
  std::string warning;
  ASSIGN_OR_RETURN(
      const std::string start,
      calibrate::StartProfileFor(gpu.ok() ? *gpu : Provenance(),
                                 calibrate::Name(flags.plan.format), &warning));
  return calibrate::LoadDeviceProfile(start);
}

absl::StatusOr<int> List(const RunFlags& flags, const Factories& factories,
                         const Model& model) {
  ASSIGN_OR_RETURN(const DeviceProfile profile,
                   ProfileForList(flags, factories));
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
  if (!plan.sustained.key.empty()) {
    const double seconds = calibrate::CalibrationOptions().sustained_seconds;
    absl::StrAppendFormat(&text, "%6.1f s  %s\n", seconds, plan.sustained.key);
    sum += seconds;
  }
  absl::StrAppendFormat(&text, "%d workloads, about %.0f min on a %s\n",
                        plan.workloads.size() + plan.memory.size(), sum / 60,
                        profile.name());
  return PrintAnswer(text);
}

// Returns the journal of an earlier run, or an empty one. Workloads that were
// wrong or failed are tried again.
absl::StatusOr<Calibration> OpenJournal(const RunFlags& flags,
                                        const std::string& path,
                                        const calibrate::Bench& bench) {
  Calibration now;
  *now.mutable_provenance() = bench.provenance();
  now.mutable_provenance()->set_weir_version(std::string(WeirVersion()));
  now.mutable_provenance()->set_command(flags.command);
  now.mutable_provenance()->set_measured_on(
      absl::FormatTime("%Y-%m-%d", absl::Now(), absl::UTCTimeZone()));
  now.set_format(calibrate::Name(bench.half_format()));
  if (bench.num_partitions() > 1) {
    now.set_num_partitions(bench.num_partitions());
    now.set_part_multiprocessors(bench.part_multiprocessors());
  }
  std::error_code error;
  // A file that weir did not write exists only with --force, which replaces it.
  if (!flags.fresh && std::filesystem::exists(path, error) &&
      IsReplaceable(path, ReplaceOptions())) {
    std::vector<std::string> damage;
    ASSIGN_OR_RETURN(Calibration journal,
                     calibrate::LoadJournal(path, &damage));
    for (const std::string& what : damage) {
      PrintWarning(absl::StrCat(what, "; this workload is measured again"),
                   OutputFlags());
    }
    const absl::Status same = calibrate::CheckSameMachine(path, journal, now);
    if (!same.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(same.message(),
                       "\nthe times are not comparable: give another --out, or "
                       "--fresh to start again"));
    }
    journal = calibrate::CompletedPart(journal);
    Note(flags,
         absl::StrCat("continues from ", path, ": ", journal.workloads_size(),
                      " workloads already measured"));
    return journal;
  }
  // Detects an unwritable journal now rather than after ten minutes.
  RETURN_IF_ERROR(calibrate::SaveJournal(path, now));
  return now;
}

// Adds a remark to the provenance unless an earlier run has done so.
void AddRemark(const std::string& remark, Calibration* journal) {
  auto* remarks = journal->mutable_provenance()->mutable_remarks();
  if (std::find(remarks->begin(), remarks->end(), remark) == remarks->end()) {
    *remarks->Add() = remark;
  }
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
  if (flags.list) return List(flags, factories, model);
  RETURN_IF_ERROR(CheckFiles(flags));
  ASSIGN_OR_RETURN(const OutputLock lock, OutputLock::Take(flags.out));
  ASSIGN_OR_RETURN(const std::unique_ptr<calibrate::Bench> bench,
                   OpenBench(flags, factories));
  std::string start_name = flags.start, other_start;
  if (start_name.empty()) {
    ASSIGN_OR_RETURN(start_name,
                     calibrate::StartProfileFor(
                         bench->provenance(),
                         calibrate::Name(bench->half_format()), &other_start));
  }
  ASSIGN_OR_RETURN(const DeviceProfile start,
                   calibrate::LoadDeviceProfile(start_name));
  RETURN_IF_ERROR(
      calibrate::PeakFlops(start, calibrate::Name(bench->half_format()))
          .status());
  RETURN_IF_ERROR(calibrate::CheckStart(start));
  for (const std::string& warning :
       {other_start, calibrate::OtherStart(start, bench->provenance())}) {
    if (!warning.empty()) PrintWarning(warning);
  }
  ASSIGN_OR_RETURN(const calibrate::MeasuringPlan plan,
                   PlanOf(flags, model, bench->half_format()));
  const std::string path = PartialOf(flags);
  ASSIGN_OR_RETURN(Calibration journal, OpenJournal(flags, path, *bench));
  if (!other_start.empty()) AddRemark(other_start, &journal);
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
  Note(flags, absl::StrCat("wrote ", flags.out, " and ", error ? path : done));
  return kExitOk;
}

}  // namespace

int RunCalibration(const RunFlags& flags, const Factories& factories) {
  if (!flags.list && flags.out.empty()) {
    return PrintError(absl::InvalidArgumentError(
        "weir-calibrate run: --out is missing, expected it or --list"));
  }
  const absl::StatusOr<int> code = Calibrate(flags, factories);
  return code.ok() ? *code : PrintError(code.status());
}

}  // namespace weir::cli
