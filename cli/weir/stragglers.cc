// SPDX-License-Identifier: Apache-2.0
// "weir stragglers": what slow operations cost a recorded run.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/json_text.h"
#include "base/status_macros.h"
#include "cli/options/messages.h"
#include "cli/weir/commands.h"
#include "cli/weir/document_report.h"
#include "cli/weir/envelope.h"
#include "cli/weir/recorded_input.h"
#include "plan/stragglers/what_if.h"
#include "plan/stragglers/what_if_views.h"
#include "plan/stragglers/worker_speeds.h"
#include "results/import/import_trace.h"

namespace weir::cli {
namespace {

std::string ConfigOf(const Flags& flags) {
  return DumpJson(nlohmann::ordered_json{{"traces", flags.trace.files}});
}

std::string SlowFlagOf(const std::vector<plan::SlowWorker>& slow,
                       const results::RecordedRun& run, const Flags& flags) {
  return plan::SlowFlag(slow, run.num_replicas,
                        flags.trace.tensor > 0
                            ? static_cast<int>(flags.trace.tensor)
                            : run.num_tensor_ranks);
}

// Returns what follows for simulations and plans, or "".
std::string SlowGpusText(const std::vector<plan::SlowWorker>& slow,
                         const results::RecordedRun& run, const Flags& flags) {
  if (slow.empty()) return "";
  return absl::StrCat(
      "\nslow GPUs, for simulate and plan with the layout of the run:\n  "
      "--slow ",
      SlowFlagOf(slow, run, flags), "\n");
}

// Adds the slow workers to an object.
std::string WithSlowWorkers(const std::string& json,
                            const std::vector<plan::SlowWorker>& slow,
                            const results::RecordedRun& run,
                            const Flags& flags) {
  auto object = nlohmann::ordered_json::parse(json);
  object["slow_workers"] = nlohmann::ordered_json::array();
  for (const plan::SlowWorker& worker : slow) {
    object["slow_workers"].push_back({{"replica", worker.replica},
                                      {"rank", worker.rank},
                                      {"speed", worker.speed}});
  }
  object["slow_flag"] = SlowFlagOf(slow, run, flags);
  return DumpJson(object);
}

absl::Status Analyze(const Flags& flags) {
  RETURN_IF_ERROR(CheckDocumentReport(flags.output));
  ASSIGN_OR_RETURN(const results::RecordedRun run, ReadRecordedRun(flags));
  absl::StatusOr<plan::WhatIf> what_if;
  {
    const ElapsedLine line(flags.output, "replaying steps");
    what_if = plan::AnalyzeRun(run);
  }
  RETURN_IF_ERROR(what_if.status());
  const std::vector<plan::SlowWorker> slow = plan::SlowWorkersOf(run);
  const auto json = [&] {
    return Envelope(
        flags.command, ConfigOf(flags),
        WithSlowWorkers(plan::WhatIfJson(run, *what_if), slow, run, flags),
        run.notes);
  };
  if (flags.output.format == OutputFlags::Format::kJson) {
    RETURN_IF_ERROR(PrintResult(json()));
  } else {
    RETURN_IF_ERROR(PrintResult(absl::StrCat(plan::WhatIfTable(run, *what_if),
                                             SlowGpusText(slow, run, flags))));
    for (const std::string& note : run.notes) PrintWarning(note, flags.output);
  }
  return WriteDocumentReport(flags.output, json);
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
