// SPDX-License-Identifier: Apache-2.0
#include "cli/weir_calibrate/measure_plan.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/exit_code.h"
#include "base/interrupt.h"
#include "base/output_file.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "base/units.h"
#include "base/version.h"
#include "calibrate/measure/journal.h"
#include "cli/options/messages.h"
#include "cli/weir_calibrate/progress.h"

namespace weir::cli {
namespace {

std::string ShortResult(const WorkloadResult& result) {
  return result.state() == WorkloadResult::TIMED
             ? FormatSeconds(result.seconds().p50())
             : "";
}

}  // namespace

OutputFlags OutputOf(const RunFlags& flags) {
  OutputFlags output;
  output.quiet = flags.quiet;
  return output;
}

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
    Calibration done = journal;
    done.clear_workloads();
    done.clear_stage_memory();
    for (const StageMemoryResult& result : journal.stage_memory()) {
      if (result.has_memory()) *done.add_stage_memory() = result;
    }
    for (const WorkloadResult& result : journal.workloads()) {
      if (result.state() == WorkloadResult::TIMED) {
        *done.add_workloads() = result;
      }
    }
    journal = std::move(done);
    PrintNote(
        absl::StrCat("continues from ", path, ": ", journal.workloads_size(),
                     " workloads already measured"),
        OutputOf(flags));
    return journal;
  }
  // Detects an unwritable journal now rather than after ten minutes.
  RETURN_IF_ERROR(calibrate::SaveJournal(path, now));
  return now;
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
        path.empty()
            ? ""
            : absl::StrCat("error: the measurements so far are in ", path,
                           "; run the same command again to continue\n");
    std::fputs(EscapeControls(
                   absl::StrFormat("\nerror: no progress for %g s in \"%s\": "
                                   "the GPU or its driver is hung\n%s",
                                   flags.timeout_seconds, what, kept))
                   .c_str(),
               stderr);
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
  const absl::Status status =
      calibrate::Measure(plan, options, hooks, bench, journal);
  ExitOnInterrupt();
  return status;
}

}  // namespace weir::cli
