// SPDX-License-Identifier: Apache-2.0
#include "cli/weir/several_runs.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/interrupt.h"
#include "base/status_macros.h"
#include "cli/options/flag_terms.h"
#include "cli/options/imports.h"
#include "cli/options/messages.h"
#include "cli/options/output_files.h"
#include "cli/options/overrides.h"
#include "scenarios/chunks.h"
#include "scenarios/sizes.h"
#include "schedules/options.h"
#include "schedules/schedule.h"
#include "schedules/source.h"
#include "sim/simulate.h"

namespace weir::cli {
namespace {

// Notes a schedule that does not run with the stages per rank of --chunks.
void NoteOtherChunks(const ScenarioFlags& flags, ScenarioRequest* request) {
  const uint32_t asked = flags.overrides.parallelism().chunks();
  const uint32_t used = request->scenario.parallelism().chunks();
  if (asked == 0 || used == asked) return;
  request->notes.push_back(absl::StrCat(used, used == 1 ? " stage" : " stages",
                                        " per rank, not the ", asked,
                                        " of --chunks"));
}

absl::StatusOr<scenarios::ResolvedScenario> ResolveFor(
    ScenarioFlags flags, ScenarioRequest request, const std::string& schedule) {
  RETURN_IF_ERROR(CheckChunks(flags, schedule));
  flags.schedules = {schedule};  // messages name its options
  Scenario& scenario = request.scenario;
  scenario.set_schedule(schedule);
  if (schedules::IsScheduleFile(schedule)) {
    return ResolveRequest(flags, request);
  }
  ASSIGN_OR_RETURN(const schedules::ScheduleKind* kind,
                   schedules::FindScheduleKind(schedule));
  scenario.set_schedule(schedules::WithOwnName(schedule, *kind));
  if (kind->flush) scenario.clear_num_batches();  // every batch is the same
  const std::string named = scenario.schedule();
  RETURN_IF_ERROR(
      InFlagTerms(scenarios::FillSizes(request.label, &scenario), flags));
  // One scenario serves schedules that need different numbers of chunks, unless
  // the schedule states its own.
  if (scenario.schedule() == named) {
    RETURN_IF_ERROR(scenarios::FillChunks(&scenario));
    scenarios::SetLegalChunks(*kind, &scenario);
    NoteOtherChunks(flags, &request);
  }
  return ResolveRequest(flags, request);
}

// Collects messages, each line once: problems of the scenario are the same for
// every schedule.
void Collect(const absl::Status& status, std::vector<std::string>* lines) {
  for (absl::string_view line : absl::StrSplit(status.message(), '\n')) {
    if (std::find(lines->begin(), lines->end(), line) == lines->end()) {
      lines->emplace_back(line);
    }
  }
}

// Finds errors that would otherwise be reported after minutes of simulating
// other schedules.
absl::StatusOr<Job> Checked(scenarios::ResolvedScenario scenario) {
  ASSIGN_OR_RETURN(schedules::Schedule schedule,
                   sim::CheckSimulation(scenario));
  Job job;
  if (schedules::OrdersByCosts(scenario.scenario.schedule())) {
    job.schedule = std::move(schedule);
  }
  job.scenario = std::move(scenario);
  return job;
}

absl::StatusOr<Job> JobOf(const ScenarioFlags& flags,
                          const ScenarioRequest& request,
                          const std::string& schedule, bool needs_check) {
  ASSIGN_OR_RETURN(scenarios::ResolvedScenario scenario,
                   ResolveFor(flags, request, schedule));
  if (needs_check) return Checked(std::move(scenario));
  return Job{std::move(scenario), std::nullopt};
}

absl::StatusOr<Result> SimulateJob(const Job& job,
                                   const sim::SimulateOptions& options) {
  return job.schedule.has_value()
             ? sim::SimulateSchedule(job.scenario, *job.schedule, options)
             : sim::Simulate(job.scenario, options);
}

// Names each schedule once: a comparison may repeat it.
std::string DescribeInterrupt(const std::vector<std::string>& missing) {
  constexpr size_t kMaxNamed = 20;
  std::vector<std::string> names;
  std::set<std::string> named;
  for (const std::string& name : missing) {
    if (!named.insert(name).second) continue;
    if (named.size() <= kMaxNamed) names.push_back(name);
  }
  if (named.size() > names.size()) names.push_back("...");
  return absl::StrCat("interrupted, not simulated: ",
                      absl::StrJoin(names, ", "));
}

}  // namespace

bool HasScenarioFlags(const ScenarioFlags& flags) {
  ScenarioFlags others = flags;
  others.scenario.clear();
  return others.overrides.ByteSizeLong() > 0 || !others.costs.empty() ||
         !others.schedules.empty() || others.sequence_parallel.has_value() ||
         others.flash_attention.has_value() || others.dropout.has_value() ||
         others.fp32_gradients.has_value() ||
         others.fully_sharded.has_value() ||
         others.distributed_optimizer.has_value() ||
         others.post_validation.has_value() ||
         !others.imports.megatron_args.empty() ||
         !others.imports.sbatch.empty() || !others.imports.nemo.empty() ||
         !others.imports.torchtitan.empty() ||
         !others.imports.deepspeed.empty();
}

absl::StatusOr<ToSimulate> ResolveAll(const Flags& flags) {
  RETURN_IF_ERROR(CheckOutputs(flags.output, /*folders=*/true));
  ASSIGN_OR_RETURN(const ScenarioRequest request,
                   ApplyOverrides(flags.scenario));
  PrintImports(request, flags.output);
  std::vector<std::string> schedules = flags.scenario.schedules;
  const std::string from = schedules.empty() ? absl::StrCat(request.label, ": ")
                                             : "command line: --";
  if (schedules.empty() && !request.scenario.schedule().empty()) {
    schedules.push_back(request.scenario.schedule());
  }
  if (schedules.empty()) {
    schedules = {scenarios::DefaultSchedule(request.scenario.parallelism())};
  }
  ToSimulate work;
  std::vector<std::string> lines;
  absl::Status worst;
  bool all_known = true;
  std::set<std::string> checked;
  const auto needs_check = [&](const std::string& schedule) {
    return schedules.size() > 1 && !checked.contains(schedule);
  };
  ProgressLine progress(flags.output);
  for (const std::string& schedule : schedules) {
    progress.Show(absl::StrCat("checking ", schedule));
    const absl::Status known =
        schedules::IsScheduleFile(schedule)
            ? absl::OkStatus()
            : schedules::FindScheduleKind(schedule).status();
    if (!known.ok()) {
      Collect(absl::NotFoundError(absl::StrCat(from, known.message())), &lines);
      all_known = false;
      continue;
    }
    absl::StatusOr<Job> job =
        JobOf(flags.scenario, request, schedule, needs_check(schedule));
    if (job.ok()) {
      checked.insert(schedule);
      work.jobs.push_back(*std::move(job));
    } else {
      Collect(job.status(), &lines);
      if (ExitCodeOf(job.status()) > ExitCodeOf(worst)) worst = job.status();
    }
  }
  if (lines.empty()) return work;
  work.refused = absl::Status(
      worst.ok() ? absl::StatusCode::kInvalidArgument : worst.code(),
      absl::StrJoin(lines, "\n"));
  if (work.jobs.empty() || !all_known) return work.refused;
  return work;
}

Outcome SimulateAll(const std::vector<Job>& jobs, const std::string& flops,
                    const OutputFlags& output) {
  Outcome outcome;
  std::vector<std::string> missing;
  ProgressLine progress(output);
  NoteInterrupt();
  for (size_t i = 0; i < jobs.size(); ++i) {
    const std::string& schedule = jobs[i].scenario.scenario.schedule();
    if (Interrupted()) {
      missing.push_back(schedule);
      continue;
    }
    const std::string what =
        absl::StrCat("[", i + 1, "/", jobs.size(), "] ", schedule);
    sim::SimulateOptions options;
    options.keep_timeline = NeedsTimeline(output);
    // The hundreds of batches before the steady state are not informative.
    if (jobs.size() > 1) options.timeline_batches = 16;
    // Short runs do not report progress.
    progress.Show(what, 0);
    options.progress = [&](double done) { progress.Show(what, done); };
    absl::StatusOr<Result> result = SimulateJob(jobs[i], options);
    if (!result.ok() || i + 1 == jobs.size()) progress.Clear();
    if (result.ok()) {
      outcome.results.push_back(*std::move(result));
      if (!flops.empty()) outcome.results.back().set_flops_formula(flops);
    } else if (absl::IsCancelled(result.status()) || Interrupted()) {
      missing.push_back(schedule);
    } else {
      outcome.exit_code =
          std::max<int>(outcome.exit_code, PrintError(result.status(), output));
    }
  }
  ExitOnInterrupt();
  if (Interrupted()) outcome.exit_code = InterruptExitCode();
  if (!missing.empty()) outcome.warnings = {DescribeInterrupt(missing)};
  return outcome;
}

}  // namespace weir::cli
