// SPDX-License-Identifier: Apache-2.0
// "weir slack": how much delay the passes and transfers of schedules absorb.
#include "cli/weir/slack.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_text.h"
#include "base/status_macros.h"
#include "base/textproto.h"
#include "cli/options/messages.h"
#include "cli/weir/commands.h"
#include "cli/weir/envelope.h"
#include "results/summary.h"
#include "sim/simulate.h"

namespace weir::cli {

std::string RowLabel(const std::string& schedule, int chunks) {
  Result result;
  result.set_schedule(schedule);
  result.set_chunks(chunks);
  return results::RowName(result);
}

std::string ConfigJson(const std::vector<Job>& jobs) {
  nlohmann::ordered_json scenarios = nlohmann::ordered_json::array();
  for (const Job& job : jobs) {
    scenarios.push_back(PrintTextProto(job.scenario.scenario));
  }
  return DumpJson(nlohmann::ordered_json{{"scenarios", std::move(scenarios)}});
}

absl::StatusOr<std::vector<plan::NamedSlack>> SlackOfJobs(
    const std::vector<Job>& jobs, const OutputFlags& output) {
  std::vector<plan::NamedSlack> all;
  ProgressLine line(output);
  for (const Job& job : jobs) {
    const std::string& schedule = job.scenario.scenario.schedule();
    sim::SimulateOptions options;
    if (line.enabled()) {
      options.progress = [&](double done) { line.Show(schedule, done); };
    }
    ASSIGN_OR_RETURN(sim::ScheduleSlack slack,
                     sim::SlackOfScenario(job.scenario, options));
    std::string label = RowLabel(schedule, slack.chunks);
    all.push_back({schedule, std::move(label), std::move(slack)});
  }
  return all;
}

int RunSlack(const Flags& flags) {
  const auto work = ResolveAll(flags);
  if (!work.ok()) return PrintError(work.status(), flags.output);
  const int refused =
      work->refused.ok() ? kExitOk : PrintError(work->refused, flags.output);
  const auto all = SlackOfJobs(work->jobs, flags.output);
  if (!all.ok()) return PrintError(all.status(), flags.output);
  const bool is_json = flags.output.format == OutputFlags::Format::kJson;
  const absl::Status printed =
      PrintResult(is_json ? Envelope(flags.command, ConfigJson(work->jobs),
                                     plan::SlackJson(*all))
                          : plan::SlackTable(*all));
  if (!printed.ok()) return PrintError(printed, flags.output);
  return refused;
}

}  // namespace weir::cli
