// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
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
#include "cli/weir/commands.h"
#include "results/summary.h"
#include "results/views/views.h"
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

struct Job {
  scenarios::ResolvedScenario scenario;
  // Set if generating it may take long: its order depends on costs.
  std::optional<schedules::Schedule> schedule;
};

struct ToSimulate {
  std::vector<Job> jobs;
  absl::Status refused;  // errors of schedules that cannot be simulated
};

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

// Checks every schedule before the first one is simulated.
absl::StatusOr<ToSimulate> ResolveAll(const Flags& flags) {
  RETURN_IF_ERROR(CheckOutputs(flags.output, /*folders=*/true));
  ASSIGN_OR_RETURN(const ScenarioRequest request,
                   ApplyOverrides(flags.scenario));
  PrintImports(request, flags.output);
  std::vector<std::string> schedules = flags.scenario.schedules;
  const std::string from = schedules.empty() ? absl::StrCat(request.label, ": ")
                                             : "command line: --schedule: ";
  if (schedules.empty() && !request.scenario.schedule().empty()) {
    schedules.push_back(request.scenario.schedule());
  }
  if (schedules.empty()) schedules = {"1f1b"};
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

struct Outcome {
  std::vector<Result> results;
  // If interrupted: names the missing schedules.
  std::vector<std::string> warnings;
  int exit_code = kExitOk;  // the worst of the failed simulations
};

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

// Simulates one job after the other. Reports failures at once and continues.
// Ctrl-C keeps the results so far.
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
    options.keep_timeline = !output.out.empty() || !output.trace.empty();
    // The hundreds of batches before the steady state are not informative.
    options.timeline_batches = 16;
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

std::string View(const Flags& flags, const Outcome& outcome) {
  const std::vector<Result>& results = outcome.results;
  switch (flags.output.format) {
    case OutputFlags::Format::kJson:
      return results::CompareJson(flags.command, results, outcome.warnings);
    case OutputFlags::Format::kCsv:
      return results::CompareCsv(results);
    case OutputFlags::Format::kTable:
      break;
  }
  return results::CompareTable(results);
}

}  // namespace

int RunCompare(const Flags& flags) {
  const auto work = ResolveAll(flags);
  if (!work.ok()) return PrintError(work.status(), flags.output);
  // Before the first simulation, since some take minutes.
  const int refused =
      work->refused.ok() ? kExitOk : PrintError(work->refused, flags.output);
  Outcome outcome = SimulateAll(work->jobs, flags.flops, flags.output);
  outcome.exit_code = std::max<int>(outcome.exit_code, refused);
  for (const std::string& warning : outcome.warnings) {
    PrintWarning(warning, flags.output);
  }
  if (outcome.results.empty()) return outcome.exit_code;

  int code = outcome.exit_code;
  const absl::Status printed = PrintResult(View(flags, outcome));
  if (!printed.ok()) {
    code = std::max<int>(code, PrintError(printed, flags.output));
  }
  const results::Fastest fastest = results::FindFastest(outcome.results);
  if (!fastest.that_fits) code = std::max<int>(code, kExitNegative);

  Results results;
  for (Result& result : outcome.results) {
    *results.add_results() = std::move(result);
  }
  PrintWarnings(results, flags.output);
  const int traced = fastest.that_fits.value_or(fastest.of_all.value_or(0));
  const absl::Status written =
      WriteOutputs(flags.output, results, &results.results(traced));
  if (!written.ok()) {
    code = std::max<int>(code, PrintError(written, flags.output));
  }
  return code;
}

}  // namespace weir::cli
