// SPDX-License-Identifier: Apache-2.0
// "weir jitter": step times of schedules whose passes vary.
#include "plan/stragglers/jitter.h"

#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "cli/options/messages.h"
#include "cli/weir/commands.h"
#include "cli/weir/envelope.h"
#include "cli/weir/several_runs.h"
#include "cli/weir/slack.h"
#include "sim/simulate.h"

namespace weir::cli {
namespace {

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
    all.push_back({schedule, RowLabel(schedule, run.chunks), run.batch_seconds,
                   run.makespan_seconds, run.simulated_batches, run.num_batches,
                   run.is_exact,
                   plan::SampleStepSeconds(run, request, progress)});
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
