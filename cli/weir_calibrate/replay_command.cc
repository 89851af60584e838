// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "base/version.h"
#include "calibrate/execute/execute_schedule.h"
#include "calibrate/execute/host_device.h"
#include "cli/options/messages.h"
#include "cli/options/output_files.h"
#include "cli/options/overrides.h"
#include "cli/weir_calibrate/calibrate_commands.h"
#include "cli/weir_calibrate/replay_gpu.h"
#include "plan/replay/replay_result.h"
#include "plan/replay/scenario_plan.h"
#include "plan/replay/training_check.h"
#include "results/views/views.h"

namespace weir::cli {
namespace {

absl::Status CheckReplayFlags(const ReplayFlags& flags) {
  Problems problems("weir-calibrate replay");
  if (flags.num_partitions > 0 && flags.cpu) {
    problems.Add("--partitions",
                 "requires a GPU and cannot be combined with --cpu, where "
                 "ranks are threads");
  }
  if (flags.num_partitions > 0 && flags.serial.value_or(false)) {
    problems.Add("--partitions", "cannot be combined with --serial");
  }
  if (!flags.cpu && flags.num_partitions == 0 && !flags.serial.value_or(true)) {
    problems.Add(
        "--serial",
        "is off, but without --partitions ranks cannot run concurrently");
  }
  if (flags.memory_bytes > 0 || flags.num_multiprocessors > 0) {
    problems.Add(flags.memory_bytes > 0 ? "--memory" : "--multiprocessors",
                 "requires --plan: a replay uses this machine's GPU");
  }
  return problems.ToStatus();
}

bool IsSerial(const ReplayFlags& flags) {
  return flags.cpu ? flags.serial.value_or(false) : flags.num_partitions == 0;
}

// Returns the scenario, with the preset of this machine's GPU if nothing else
// names a profile.
absl::StatusOr<ScenarioFlags> PricedScenarioOf(const ReplayFlags& flags,
                                               const Factories& factories) {
  ScenarioFlags asked = ScenarioOf(flags);
  if (flags.cpu) return asked;
  ASSIGN_OR_RETURN(const bool needs_profile, NeedsProfile(asked));
  if (!needs_profile) return asked;
  ASSIGN_OR_RETURN(const Provenance gpu, GpuOf(flags, factories));
  ASSIGN_OR_RETURN(const std::string preset, PresetOf(gpu));
  asked.overrides.set_profile(preset);
  PrintNote(absl::StrCat("no --profile: batches and memory of ranks are "
                         "predicted with the preset ",
                         preset),
            flags.weir.output);
  return asked;
}

plan::ReplaySettings SettingsOf(const ReplayFlags& flags) {
  plan::ReplaySettings settings;
  settings.on_gpu = !flags.cpu;
  settings.num_partitions = flags.num_partitions;
  settings.num_steps = flags.num_steps;
  settings.seed = flags.seed;
  settings.learning_rate = flags.learning_rate;
  settings.timeout_seconds = flags.timeout_seconds;
  settings.is_checked = flags.check;
  return settings;
}

absl::StatusOr<std::unique_ptr<calibrate::ExecutionDevice>> OpenDeviceOf(
    const ReplayFlags& flags, const Factories& factories,
    const calibrate::ExecutionPlan& plan, int num_partitions) {
  if (flags.cpu) {
    calibrate::HostDeviceOptions options;
    options.concurrent = !IsSerial(flags);
    return calibrate::MakeHostDevice(plan, options);
  }
  auto device = factories.open_replay(plan, {flags.device, num_partitions});
  if (absl::IsFailedPrecondition(device.status()) ||
      absl::IsUnavailable(device.status())) {
    return UnavailableGpu(device.status());
  }
  return device;
}

Provenance ProvenanceOf(const ReplayFlags& flags,
                        const calibrate::ExecutionDevice& device) {
  Provenance provenance = device.provenance();
  provenance.set_weir_version(std::string(WeirVersion()));
  provenance.set_command(flags.weir.command);
  provenance.set_measured_on(
      absl::FormatTime("%Y-%m-%d", absl::Now(), absl::UTCTimeZone()));
  return provenance;
}

// Runs with progress; `record` contains the completed steps even if the run is
// stopped or hangs.
absl::Status Run(const ReplayFlags& flags, const calibrate::ExecutionPlan& plan,
                 calibrate::ExecutionDevice* device,
                 calibrate::ExecutionRecord* record) {
  ProgressLine progress(flags.weir.output);
  record->device = device->description();
  calibrate::ExecutionHooks hooks;
  hooks.step_done = [&](int, const calibrate::StepRecord& step) {
    record->steps.push_back(step);
    progress.Show(plan.schedule.name,
                  1.0 * record->steps.size() / plan.num_steps);
  };
  hooks.stop = Interrupted;
  progress.Show(plan.schedule.name, 0);
  absl::StatusOr<calibrate::ExecutionRecord> all =
      calibrate::ExecuteSchedule(plan, device, hooks);
  if (!all.ok()) return all.status();
  *record = *std::move(all);
  record->device = device->description();
  return absl::OkStatus();
}

absl::StatusOr<plan::TrainingCheck> Check(
    const ReplayFlags& flags, const Factories& factories,
    const calibrate::ExecutionPlan& plan,
    const calibrate::ExecutionRecord& record) {
  plan::TrainingCheck check;
  if (!flags.check) {
    check.why_not = "--no-check";
    return check;
  }
  const ElapsedLine line(flags.weir.output, "checking the training result");
  const plan::TrainingTolerance tolerance =
      flags.cpu
          ? plan::kHostTolerance
          : plan::GpuTolerance(plan.spec.format, plan.optimizers.front().kind);
  absl::StatusOr<plan::TrainingCheck> done = plan::CheckTraining(
      plan, record,
      [&](const calibrate::ExecutionPlan& one) {
        return OpenDeviceOf(flags, factories, one, 0);
      },
      tolerance);
  if (done.ok() && !flags.cpu && !done->formula.empty()) {
    done->formula += ", on the same GPU";
  }
  return done;
}

std::string View(const ReplayFlags& flags, const Result& result) {
  switch (flags.weir.output.format) {
    case OutputFlags::Format::kJson:
      return results::ResultJson(flags.weir.command, result);
    case OutputFlags::Format::kCsv:
      return results::RanksCsv(result);
    case OutputFlags::Format::kTable:
      break;
  }
  return results::ResultTable(result);
}

// Prints and writes the result; returns the exit code.
absl::StatusOr<int> Show(const ReplayFlags& flags, const Result& result) {
  RETURN_IF_ERROR(PrintResult(View(flags, result)));
  Results results;
  *results.add_results() = result;
  PrintWarnings(results, flags.weir.output);
  RETURN_IF_ERROR(
      WriteOutputs(flags.weir.output, results, &results.results(0)));
  return kExitOk;
}

absl::Status Judge(const calibrate::ExecutionPlan& plan,
                   const calibrate::ExecutionRecord& record,
                   const plan::TrainingCheck& check) {
  RETURN_IF_ERROR(calibrate::CheckVersions(plan, record));
  if (check.holds()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat(
      "%s: the training result is wrong: weights differ by %.2g, those of "
      "stage %d by %.2g relative to their change, and losses by %.2g, expected "
      "at most %.2g, %.2g and %.2g compared with %s",
      plan.schedule.name, check.difference.weights,
      check.difference.worst_stage, check.difference.change,
      check.difference.losses, check.tolerance.weights, check.tolerance.change,
      check.tolerance.losses, check.formula));
}

absl::StatusOr<int> ReplayScenario(const ReplayFlags& flags,
                                   const Factories& factories) {
  RETURN_IF_ERROR(CheckReplayFlags(flags));
  const OutputFlags& output = flags.weir.output;
  RETURN_IF_ERROR(CheckOutputs(output, /*folders=*/true));
  ASSIGN_OR_RETURN(const ScenarioFlags asked,
                   PricedScenarioOf(flags, factories));
  ASSIGN_OR_RETURN(const scenarios::ResolvedScenario scenario,
                   ResolveFlags(asked));
  ASSIGN_OR_RETURN(const calibrate::ExecutionPlan plan,
                   plan::PlanOfScenario(scenario, SettingsOf(flags)));
  calibrate::ExecutionRecord record;
  Provenance provenance;
  absl::Status ran;
  NoteInterrupt();
  {
    ASSIGN_OR_RETURN(
        const std::unique_ptr<calibrate::ExecutionDevice> device,
        OpenDeviceOf(flags, factories, plan, flags.num_partitions));
    provenance = ProvenanceOf(flags, *device);
    ran = Run(flags, plan, device.get(), &record);
  }
  ExitOnInterrupt();
  int code = kExitOk;
  if (!ran.ok()) {
    code = PrintError(ran, output);
    // Insufficient memory and deadlocks are results of the replay.
    if (code == kExitUsage) code = kExitNegative;
    if (record.steps.empty()) return code;
  }
  plan::TrainingCheck check;
  check.why_not = "the replay did not finish";
  if (ran.ok()) {
    ASSIGN_OR_RETURN(check, Check(flags, factories, plan, record));
  }
  ASSIGN_OR_RETURN(const Result result,
                   plan::ResultOfReplay({scenario, plan, record, provenance,
                                         IsSerial(flags), check}));
  ASSIGN_OR_RETURN(const int shown, Show(flags, result));
  if (code != kExitOk) return code;
  const absl::Status verdict = Judge(plan, record, check);
  if (verdict.ok()) return shown;
  PrintError(verdict, output);
  return kExitNegative;
}

}  // namespace

int RunReplayCommand(const ReplayFlags& flags, const Factories& factories) {
  if (flags.plan) return RunReplayPlan(flags, factories);
  const absl::StatusOr<int> code = ReplayScenario(flags, factories);
  return code.ok() ? *code : PrintError(code.status(), flags.weir.output);
}

}  // namespace weir::cli
