// SPDX-License-Identifier: Apache-2.0
// "weir import": a step of a recorded run as a result.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/output_file.h"
#include "base/status_macros.h"
#include "base/textproto.h"
#include "cli/options/messages.h"
#include "cli/options/output_files.h"
#include "cli/weir/commands.h"
#include "cli/weir/recorded_input.h"
#include "plan/stragglers/run_costs.h"
#include "results/import/run_result.h"
#include "results/views/views.h"

namespace weir::cli {
namespace {

// Returns the index of --step.
absl::StatusOr<int> StepOf(const Flags& flags,
                           const std::vector<results::RecordedStep>& steps) {
  if (flags.trace.step.empty()) return results::MedianStep(steps);
  constexpr size_t kMaxNamed = 10;
  std::vector<std::string> names;
  for (size_t i = 0; i < steps.size(); ++i) {
    const std::string name = absl::StrCat(steps[i].step);
    if (name == flags.trace.step) return static_cast<int>(i);
    if (names.size() < kMaxNamed) names.push_back(name);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      flags.trace.files[0], ": --step is ", flags.trace.step, ", expected ",
      absl::StrJoin(names, ", "), steps.size() > kMaxNamed ? ", ..." : ""));
}

absl::Status WriteCosts(const Flags& flags, const plan::RunCosts& costs) {
  RETURN_IF_ERROR(WriteOutput(flags.trace.costs,
                              MarkText(PrintTextProto(costs.costs)),
                              ReplaceOf(flags.output)));
  std::string note = absl::StrFormat("wrote %s (weir simulate --costs %s)",
                                     flags.trace.costs, flags.trace.costs);
  if (costs.deviation.has_value()) {
    absl::StrAppendFormat(&note,
                          "; passes vary as --jitter pass=lognormal:%.3g",
                          *costs.deviation);
  }
  if (!costs.left_out.empty()) absl::StrAppend(&note, "; ", costs.left_out);
  PrintNote(note, flags.output);
  return absl::OkStatus();
}

absl::Status Import(const Flags& flags) {
  if (!flags.output.report.empty()) {
    RETURN_IF_ERROR(CheckReportPath("--report", flags.output.report));
  }
  RETURN_IF_ERROR(weir::CheckOutputs(
      {{"--costs", flags.trace.costs, ReplaceOf(flags.output)},
       {"--output", flags.output.out, ReplaceOf(flags.output)},
       {"--report", flags.output.report, ReplaceOf(flags.output)}}));
  ASSIGN_OR_RETURN(const results::RecordedRun run, ReadRecordedRun(flags));
  ASSIGN_OR_RETURN(const int step, StepOf(flags, results::StepsOf(run)));
  absl::StatusOr<plan::RunCosts> costs;
  if (!flags.trace.costs.empty()) {
    costs = plan::CostsOfRun(run);
    RETURN_IF_ERROR(costs.status());
  }
  Results all;
  Result* result = all.add_results();
  *result = results::ResultOfStep(run, step);
  const bool is_json = flags.output.format == OutputFlags::Format::kJson;
  RETURN_IF_ERROR(PrintResult(
      is_json ? results::ResultJson(flags.command, *result)
              : absl::StrCat(results::ResultTable(*result),
                             run.summary.empty() ? "" : "\n", run.summary)));
  PrintWarnings(all, flags.output);
  absl::Status written = WriteOutputs(flags.output, all, nullptr);
  if (costs.ok()) written.Update(WriteCosts(flags, *costs));
  return written;
}

}  // namespace

int RunImport(const Flags& flags) {
  const absl::Status status = Import(flags);
  return status.ok() ? kExitOk : PrintError(status, flags.output);
}

}  // namespace weir::cli
