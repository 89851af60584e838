// SPDX-License-Identifier: Apache-2.0
// "weir sweep": runs a sweep here or as a Slurm job array.
#include "plan/sweep/sweep.h"

#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/interrupt.h"
#include "base/output_file.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "base/textproto.h"
#include "base/units.h"
#include "base/worker_pool.h"
#include "cli/options/messages.h"
#include "cli/options/output_files.h"
#include "cli/options/overrides.h"
#include "cli/weir/commands.h"
#include "cli/weir/document_report.h"
#include "cli/weir/envelope.h"
#include "plan/sweep/collect.h"
#include "plan/sweep/fields.h"
#include "plan/sweep/idle_points.h"
#include "plan/sweep/run_sweep.h"
#include "plan/sweep/slurm.h"
#include "plan/sweep/sweep_views.h"
#include "scenarios/scenario.h"
#include "scenarios/sizes.h"

namespace weir::cli {
namespace {

namespace fs = std::filesystem;

// An axis of the flags replaces the file's axis of the same field.
absl::Status ApplyGrid(const std::string& grid, Sweep* sweep) {
  if (grid.empty()) return absl::OkStatus();
  auto axes = plan::ParseGrid(grid);
  if (!axes.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("weir sweep: --grid ", axes.status().message()));
  }
  Problems problems("weir sweep");
  std::set<std::string> here;
  for (SweepAxis& axis : *axes) {
    if (!here.insert(axis.field()).second) {
      problems.Add(absl::StrCat("--grid ", axis.field()),
                   "is given twice, expected all values in one --grid");
    }
    SweepAxis* target = nullptr;
    for (SweepAxis& known : *sweep->mutable_axes()) {
      if (plan::LongField(known.field()) == axis.field()) target = &known;
    }
    if (target == nullptr) target = sweep->add_axes();
    *target = std::move(axis);
  }
  return problems.ToStatus();
}

// Returns whether the data-parallel size, if there is one, comes from a
// scenario file.
absl::StatusOr<bool> ApplyBase(const ScenarioFlags& flags, Sweep* sweep) {
  const std::string& base =
      flags.scenario.empty() ? sweep->base() : flags.scenario;
  Scenario scenario;
  if (!base.empty()) {
    ASSIGN_OR_RETURN(scenario, scenarios::LoadScenario(base));
  }
  if (scenarios::SetsGroups(sweep->scenario())) {
    scenarios::ClearReplicas(&scenario);
  }
  const bool replicas_of_file = sweep->scenario().parallelism().data() == 0 &&
                                flags.overrides.parallelism().data() == 0;
  scenario.MergeFrom(sweep->scenario());
  RETURN_IF_ERROR(Override(flags, &scenario));
  if (flags.schedules.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("weir sweep: --schedule lists several schedules, expected "
                     "--grid schedule=",
                     absl::StrJoin(flags.schedules, ",")));
  }
  if (!flags.schedules.empty()) scenario.set_schedule(flags.schedules[0]);
  sweep->clear_base();
  *sweep->mutable_scenario() = std::move(scenario);
  return replicas_of_file;
}

// Returns true if --resume and the folder are all that is given.
bool OnlyResumes(const Flags& flags) {
  const ScenarioFlags& scenario = flags.scenario;
  return flags.sweep.resume && flags.name.empty() && flags.sweep.grid.empty() &&
         flags.sweep.points.empty() && scenario.scenario.empty() &&
         scenario.costs.empty() && scenario.schedules.empty() &&
         scenario.overrides.ByteSizeLong() == 0;
}

absl::StatusOr<plan::ResolvedSweep> ReadSweep(const Flags& flags) {
  Sweep sweep;
  if (OnlyResumes(flags)) {
    ASSIGN_OR_RETURN(sweep, plan::SweepOfFolder(flags.sweep.folder));
    return plan::ResolveSweep("weir sweep", sweep);
  }
  if (!flags.name.empty()) {
    ASSIGN_OR_RETURN(sweep, plan::LoadSweep(flags.name));
  }
  ASSIGN_OR_RETURN(const bool replicas_of_file,
                   ApplyBase(flags.scenario, &sweep));
  RETURN_IF_ERROR(ApplyGrid(flags.sweep.grid, &sweep));
  if (!flags.sweep.points.empty()) {
    sweep.clear_points();
    sweep.set_points_csv(flags.sweep.points);
  }
  if (flags.fast) sweep.set_method(SWEEP_FAST);
  return plan::ResolveSweep(flags.name.empty() ? "weir sweep" : flags.name,
                            sweep, replicas_of_file);
}

// Shows "[1141/2000] points, 38/s, ETA 23 s, best 9.41 s".
class Progress {
 public:
  explicit Progress(const OutputFlags& output) : line_(output) {}

  void Show(const plan::SweepCounts& counts) {
    if (!line_.enabled()) return;
    const double seconds =
        std::chrono::duration<double>(Clock::now() - start_).count();
    const uint32_t num_now = counts.num_ended() - counts.num_before;
    const double rate = num_now / std::max(seconds, 1e-3);
    const uint32_t num_left = counts.num_points - counts.num_ended();
    line_.Show(
        absl::StrCat(
            "[", counts.num_ended(), "/", counts.num_points, "] points",
            num_now > 0
                ? absl::StrCat(", ", absl::StrFormat("%.3g", rate), "/s, ETA ",
                               FormatSeconds(num_left / rate))
                : "",
            counts.has_best
                ? absl::StrCat(", best ",
                               FormatSeconds(counts.best.batch_seconds()))
                : "",
            counts.num_failed > 0
                ? absl::StrCat(", ", counts.num_failed, " failed")
                : ""),
        1.0 * counts.num_ended() / std::max(counts.num_points, 1u));
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
  ProgressLine line_;
};

std::string Summary(const plan::ResolvedSweep& sweep,
                    const plan::SweepCounts& counts, const std::string& path) {
  std::string text = absl::StrCat(
      EscapeLine(path), ": ", counts.num_points, " points: ",
      counts.num_before > 0 ? absl::StrCat(counts.num_before, " already done, ")
                            : "",
      counts.num_done, " done, ", counts.num_refused, " refused, ",
      counts.num_failed, " failed");
  const uint32_t num_left = counts.num_points - counts.num_ended();
  if (counts.num_over_time > 0) {
    absl::StrAppend(&text, " (", counts.num_over_time, " over the time limit)");
  }
  if (num_left > 0) absl::StrAppend(&text, ", ", num_left, " not yet run");
  absl::StrAppend(&text, "\n");
  if (counts.has_best) {
    absl::StrAppend(&text, "best: ", plan::PointText(sweep, counts.best), "\n");
  }
  return text;
}

void WarnOfFailures(const Flags& flags, const plan::SweepCounts& counts) {
  if (counts.num_failed > 0) {
    PrintWarning(
        absl::StrCat(counts.num_failed,
                     " points failed: ", plan::ReasonText(*counts.failure),
                     counts.num_failed > counts.num_over_time
                         ? " (--resume runs them again)"
                         : " (--resume with a longer --time-limit runs them "
                           "again)"),
        flags.output);
  }
  if (counts.num_over_time_before > 0) {
    PrintWarning(
        absl::StrCat(counts.num_over_time_before,
                     " points exceeded the same or a longer time limit before "
                     "(--resume with a longer --time-limit runs them again)"),
        flags.output);
  }
}

// Writes --report with the points of all shards in the folder.
absl::Status Report(const Flags& flags) {
  if (flags.output.report.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const plan::CollectedSweep collected,
                   plan::CollectShards(flags.sweep.folder));
  return WriteDocumentReport(flags.output, [&] {
    return Envelope(flags.command, "{}", plan::SweepJson(collected));
  });
}

int RunHere(const Flags& flags, const plan::ResolvedSweep& sweep) {
  plan::SweepOptions options;
  options.folder = flags.sweep.folder;
  const auto shard = plan::ParseShard(flags.sweep.shard);
  if (!shard.ok()) {
    return PrintError(absl::InvalidArgumentError(absl::StrCat(
                          "weir sweep: --shard ", shard.status().message())),
                      flags.output);
  }
  options.shard = *shard;
  options.resume = flags.sweep.resume;
  options.time_limit_seconds = flags.sweep.time_limit_seconds;
  options.force = flags.output.force;
  options.warn = [&](const std::string& text) {
    PrintWarning(absl::StrCat(text, "; the point is run again"), flags.output);
  };
  options.num_processes = flags.num_jobs > 0 ? static_cast<int>(flags.num_jobs)
                                             : DefaultProcesses();
  options.stop = Interrupted;
  NoteInterrupt();
  absl::StatusOr<plan::SweepCounts> counts;
  {
    Progress progress(flags.output);
    options.progress = [&](const plan::SweepCounts& now) {
      progress.Show(now);
    };
    counts = plan::RunSweep(sweep, options);
  }
  ExitOnInterrupt();
  if (!counts.ok()) return PrintError(counts.status(), flags.output);
  const absl::Status printed = PrintResult(
      Summary(sweep, *counts, plan::ShardPath(options.folder, options.shard)));
  if (!printed.ok()) return PrintError(printed, flags.output);
  WarnOfFailures(flags, *counts);
  const absl::Status reported = Report(flags);
  if (!reported.ok()) return PrintError(reported, flags.output);
  if (Interrupted()) return InterruptExitCode();
  if (counts->num_failed > counts->num_over_time) return kExitInternal;
  if (counts->num_over_time + counts->num_over_time_before > 0) {
    return kExitNegative;
  }
  const std::string none_ran = plan::NoneRanText(*counts);
  if (none_ran.empty()) return kExitOk;
  PrintWarning(none_ran, flags.output);
  return kExitNegative;
}

// Waits for the job, then does the same as "weir collect --complete".
int WaitForSlurm(const Flags& flags, const std::string& job) {
  NoteInterrupt();
  {
    ProgressLine progress(flags.output);
    while (!Interrupted() && !plan::SlurmJobHasEnded(job)) {
      progress.Show(absl::StrCat("waiting for job ", job));
      sleep(1);
    }
  }
  if (Interrupted()) {
    PrintNote(
        absl::StrCat("job ", job, " continues; scancel ", job, " cancels it"),
        flags.output);
    return InterruptExitCode();
  }
  Flags collect = flags;
  collect.name = flags.sweep.folder;
  collect.sweep.complete = true;
  return RunCollect(collect);
}

absl::StatusOr<std::string> Submit(const Flags& flags,
                                   const plan::ResolvedSweep& sweep) {
  RETURN_IF_ERROR(
      plan::CheckSweepFolder(sweep, flags.sweep.folder, flags.sweep.resume));
  std::error_code error;
  plan::SlurmSweep job;
  job.program = fs::read_symlink("/proc/self/exe", error);
  job.folder = fs::absolute(flags.sweep.folder, error);
  job.file = absl::StrCat(job.folder, "/sweep.textproto");
  job.num_nodes = static_cast<int>(flags.sweep.slurm_nodes);
  job.time_limit_seconds = flags.sweep.time_limit_seconds;
  job.sbatch_args = flags.sweep.slurm_args;
  job.force = flags.output.force;
  RETURN_IF_ERROR(WriteOutput(job.file, MarkText(PrintTextProto(sweep.sweep)),
                              ReplaceOf(flags.output)));
  return plan::SubmitToSlurm(job);
}

// Refuses flags that would be ignored, which might leave a part of the sweep
// out.
absl::Status CheckSlurmFlags(const Flags& flags) {
  const SweepFlags& sweep = flags.sweep;
  Problems problems("weir sweep");
  const auto refuse = [&](absl::string_view flag, bool is_given,
                          absl::string_view why) {
    if (is_given) problems.Add(flag, absl::StrCat("is given ", why));
  };
  refuse("--wait", sweep.wait && !sweep.slurm, "without --slurm");
  refuse("--report", !flags.output.report.empty() && sweep.slurm && !sweep.wait,
         "with --slurm, but without --wait");
  refuse("--slurm-args", !sweep.slurm_args.empty() && !sweep.slurm,
         "without --slurm");
  constexpr absl::string_view kTasks =
      "with --slurm, which assigns the shards itself";
  refuse("--shard", sweep.shard != SweepFlags().shard && sweep.slurm, kTasks);
  RETURN_IF_ERROR(problems.ToStatus());
  return CheckDocumentReport(flags.output);
}

}  // namespace

int RunSweepCommand(const Flags& flags) {
  const absl::Status checked = CheckSlurmFlags(flags);
  if (!checked.ok()) return PrintError(checked, flags.output);
  const auto sweep = ReadSweep(flags);
  if (!sweep.ok()) return PrintError(sweep.status(), flags.output);
  if (const std::string idle = plan::IdlePointsWarning(*sweep); !idle.empty()) {
    PrintWarning(idle, flags.output);
  }
  if (!flags.sweep.slurm) return RunHere(flags, *sweep);
  const auto job = Submit(flags, *sweep);
  if (!job.ok()) return PrintError(job.status(), flags.output);
  PrintNote(absl::StrCat("job ", *job, ": ", flags.sweep.slurm_nodes,
                         " tasks for ", sweep->num_points, " points; then ",
                         "weir collect ", flags.sweep.folder),
            flags.output);
  return flags.sweep.wait ? WaitForSlurm(flags, *job) : kExitOk;
}

}  // namespace weir::cli
