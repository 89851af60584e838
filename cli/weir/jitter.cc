// SPDX-License-Identifier: Apache-2.0
// "weir jitter": step times of schedules whose passes vary.
#include "plan/stragglers/jitter.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cli/options/messages.h"
#include "cli/weir/commands.h"
#include "cli/weir/envelope.h"
#include "cli/weir/several_runs.h"
#include "cli/weir/slack.h"
#include "sim/costs/documents.h"
#include "sim/simulate.h"

namespace weir::cli {
namespace {

// Returns the request with the attention of the job's packed sequences.
absl::StatusOr<plan::JitterRequest> RequestOf(
    const plan::JitterRequest& request, const Scenario& scenario) {
  plan::JitterRequest own = request;
  for (plan::JitterSource& source : own.sources) {
    if (source.kind == plan::JitterSource::Kind::kRecorded) {
      RETURN_IF_ERROR(plan::SetRecorded(scenario.costs(), &source));
    }
    if (source.kind != plan::JitterSource::Kind::kDocuments) continue;
    if (!scenario.batch().has_packed_sequences()) {
      return absl::InvalidArgumentError(
          absl::StrCat("command line: --jitter is ", source.text,
                       ", expected --packed-sequences with the lengths of "
                       "documents"));
    }
    plan::SetDocuments(scenario.batch(),
                       sim::DocumentsOfScenario(scenario).imbalance, &source);
  }
  return own;
}

absl::StatusOr<std::vector<plan::NamedJitter>> SampleJobs(
    const std::vector<Job>& jobs, const plan::JitterRequest& request,
    const OutputFlags& output) {
  std::vector<plan::NamedJitter> all;
  ProgressLine line(output);
  for (const Job& job : jobs) {
    const std::string& schedule = job.scenario.scenario.schedule();
    std::function<void(double)> progress;
    if (line.enabled()) {
      progress = [&](double done) { line.Show(schedule, done); };
    }
    sim::SimulateOptions options;
    options.progress = progress;
    ASSIGN_OR_RETURN(const sim::ReplayTasks run,
                     sim::ReplayTasksOfScenario(job.scenario, options));
    RETURN_IF_ERROR(plan::CheckSources(run, request.sources));
    ASSIGN_OR_RETURN(const plan::JitterRequest own,
                     RequestOf(request, job.scenario.scenario));
    all.push_back({schedule, RowLabel(schedule, run.chunks), run.batch_seconds,
                   run.makespan_seconds, run.simulated_batches, run.num_batches,
                   run.is_exact, plan::SampleStepSeconds(run, own, progress)});
  }
  return all;
}

}  // namespace

int RunJitter(const Flags& flags) {
  if (flags.jitter.sources.empty()) {
    return PrintError(
        absl::InvalidArgumentError(
            "command line: --jitter is not given, expected at least one "
            "source, such as --jitter pass=lognormal:0.05"),
        flags.output);
  }
  plan::JitterRequest request;
  request.num_samples = flags.jitter.num_samples;
  request.seed = flags.jitter.seed;
  for (const std::string& text : flags.jitter.sources) {
    request.sources.push_back(*plan::ParseJitterSource(text));
    if (request.sources.back().file.empty()) continue;
    const absl::Status read = plan::ReadEmpiricalTimes(&request.sources.back());
    if (!read.ok()) return PrintError(read, flags.output);
  }
  const auto work = ResolveAll(flags);
  if (!work.ok()) return PrintError(work.status(), flags.output);
  const int refused =
      work->refused.ok() ? kExitOk : PrintError(work->refused, flags.output);
  const auto all = SampleJobs(work->jobs, request, flags.output);
  if (!all.ok()) return PrintError(all.status(), flags.output);
  const bool is_json = flags.output.format == OutputFlags::Format::kJson;
  const absl::Status printed =
      PrintResult(is_json ? Envelope(flags.command, ConfigJson(work->jobs),
                                     plan::JitterJson(request, *all))
                          : plan::JitterTable(*all));
  if (!printed.ok()) return PrintError(printed, flags.output);
  return refused;
}

}  // namespace weir::cli
