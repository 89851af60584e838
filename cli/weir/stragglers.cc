// SPDX-License-Identifier: Apache-2.0
// "weir stragglers": what slow operations cost a recorded run.
#include <nlohmann/json.hpp>
#include <string>

#include "base/json_text.h"
#include "base/status_macros.h"
#include "cli/options/messages.h"
#include "cli/weir/commands.h"
#include "cli/weir/envelope.h"
#include "cli/weir/recorded_input.h"
#include "plan/stragglers/what_if.h"
#include "plan/stragglers/what_if_views.h"
#include "results/import/import_trace.h"

namespace weir::cli {
namespace {

std::string ConfigOf(const Flags& flags) {
  return DumpJson(nlohmann::ordered_json{{"traces", flags.trace.files}});
}

absl::Status Analyze(const Flags& flags) {
  ASSIGN_OR_RETURN(const results::RecordedRun run, ReadRecordedRun(flags));
  absl::StatusOr<plan::WhatIf> what_if;
  {
    const ElapsedLine line(flags.output, "replaying steps");
    what_if = plan::AnalyzeRun(run);
  }
  RETURN_IF_ERROR(what_if.status());
  if (flags.output.format == OutputFlags::Format::kJson) {
    return PrintResult(Envelope(flags.command, ConfigOf(flags),
                                plan::WhatIfJson(run, *what_if), run.notes));
  }
  RETURN_IF_ERROR(PrintResult(plan::WhatIfTable(run, *what_if)));
  for (const std::string& note : run.notes) PrintWarning(note, flags.output);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<results::RecordedRun> ReadRecordedRun(const Flags& flags) {
  ProgressLine line(flags.output);
  results::ReadProgress progress;
  if (line.enabled()) {
    progress = [&](double done) { line.Show("reading", done); };
  }
  return results::ImportTrace(flags.trace.files, progress);
}

int RunStragglers(const Flags& flags) {
  const absl::Status status = Analyze(flags);
  return status.ok() ? kExitOk : PrintError(status, flags.output);
}

}  // namespace weir::cli
