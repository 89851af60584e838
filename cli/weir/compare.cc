// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/json_text.h"
#include "cli/options/messages.h"
#include "cli/options/output_files.h"
#include "cli/weir/commands.h"
#include "cli/weir/energy_view.h"
#include "cli/weir/several_runs.h"
#include "cli/weir/slack.h"
#include "results/summary.h"
#include "results/views/views.h"

namespace weir::cli {
namespace {

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

// Adds the slack to a view: in JSON as a member "slack".
std::string WithSlack(const Flags& flags, std::string view,
                      const std::vector<plan::NamedSlack>& slack) {
  if (flags.output.format != OutputFlags::Format::kJson) {
    return absl::StrCat(view, "\n", plan::SlackTable(slack));
  }
  using nlohmann::ordered_json;
  ordered_json document = ordered_json::parse(view);
  document["slack"] =
      ordered_json::parse(plan::SlackJson(slack)).at("schedules");
  return absl::StrCat(DumpJson(document), "\n");
}

}  // namespace

int RunCompare(const Flags& flags) {
  const absl::Status possible = CheckEnergy(flags, /*with_timeline=*/false);
  if (!possible.ok()) return PrintError(possible, flags.output);
  if (flags.output.slack && flags.output.format == OutputFlags::Format::kCsv) {
    return PrintError(
        absl::InvalidArgumentError(
            "command line: --slack is given with --format csv, expected the "
            "format table or json"),
        flags.output);
  }
  const auto work = ResolveAll(flags);
  if (!work.ok()) return PrintError(work.status(), flags.output);
  if (!work->jobs.empty()) {
    const absl::Status energy =
        CheckEnergyOf(flags, work->jobs.front().scenario);
    if (!energy.ok()) return PrintError(energy, flags.output);
  }
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
  std::string text = View(flags, outcome);
  if (flags.output.slack) {
    const auto slack = SlackOfJobs(work->jobs, flags.output);
    if (!slack.ok()) return PrintError(slack.status(), flags.output);
    text = WithSlack(flags, std::move(text), *slack);
  }
  const absl::StatusOr<std::string> view =
      WithEnergy(flags, std::move(text), outcome.results);
  const absl::Status printed = view.ok() ? PrintResult(*view) : view.status();
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
