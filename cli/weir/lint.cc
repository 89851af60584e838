// SPDX-License-Identifier: Apache-2.0
#include "schedules/lint/lint.h"

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/json_text.h"
#include "base/problems.h"
#include "base/size_limits.h"
#include "base/status_macros.h"
#include "cli/options/messages.h"
#include "cli/weir/commands.h"
#include "cli/weir/envelope.h"
#include "cli/weir/schedule_input.h"
#include "schedules/interop/infer.h"
#include "schedules/lint/lint_text.h"
#include "schedules/source.h"

namespace weir::cli {
namespace {

absl::StatusOr<schedules::LintOptions> OptionsOf(const Flags& flags) {
  schedules::LintOptions options;
  Problems problems("weir schedule lint");
  for (const std::string& runtime : flags.schedule.runtimes) {
    const auto is = [&](absl::string_view word) {
      return absl::EqualsIgnoreCase(runtime, word);
    };
    if (is("rendezvous")) {
      options.rendezvous = true;
    } else if (is("pytorch")) {
      options.pytorch = true;
    } else if (is("megatron")) {
      options.megatron = true;
    } else if (!is("buffered")) {
      problems.Add("--runtime", absl::StrCat("is ", runtime,
                                             ", expected buffered, rendezvous, "
                                             "pytorch or megatron"));
    }
  }
  RETURN_IF_ERROR(problems.ToStatus());
  return options;
}

absl::StatusOr<schedules::LintReport> ReportOf(const Flags& flags) {
  ASSIGN_OR_RETURN(const schedules::LintOptions options, OptionsOf(flags));
  const bool is_rows = schedules::IsScheduleFile(flags.name) &&
                       !absl::EndsWithIgnoreCase(flags.name, ".json");
  if (!is_rows) {
    // Lowering, streams and dependencies need more than the order.
    constexpr SizeEstimate kPerAction = {300, 2e-6};
    ASSIGN_OR_RETURN(
        const schedules::Schedule schedule,
        ScheduleOfFlags(flags, schedules::FileTransfers::kChecked, kPerAction));
    return schedules::LintSchedule(schedule, options);
  }
  ASSIGN_OR_RETURN(const schedules::ScheduleRows rows,
                   schedules::ReadScheduleRows(
                       flags.name, flags.schedule.legacy
                                       ? schedules::CsvDialect::kPyTorchLegacy
                                       : schedules::CsvDialect::kPyTorch));
  ASSIGN_OR_RETURN(const schedules::LintReport report,
                   schedules::LintRows(rows, options));
  schedules::Schedule shape;
  shape.name = report.name;
  shape.num_ranks = report.num_ranks;
  shape.num_stages = report.num_stages;
  shape.num_microbatches = report.num_microbatches;
  RETURN_IF_ERROR(CheckShapeOfFlags(flags, shape));
  return report;
}

std::string ReportJson(const Flags& flags,
                       const schedules::LintReport& report) {
  using Json = nlohmann::ordered_json;
  const Json config = {{"schedule", flags.name},
                       {"pipeline", report.num_ranks},
                       {"num_stages", report.num_stages},
                       {"num_microbatches", report.num_microbatches},
                       {"runtimes", flags.schedule.runtimes}};
  return Envelope(flags.command, DumpJson(config), schedules::LintJson(report));
}

}  // namespace

int RunScheduleLint(const Flags& flags) {
  const absl::StatusOr<schedules::LintReport> report = ReportOf(flags);
  if (!report.ok()) {
    PrintError(report.status(), flags.output);
    return kExitUsage;
  }
  const absl::Status printed =
      PrintResult(flags.output.format == OutputFlags::Format::kJson
                      ? ReportJson(flags, *report)
                      : schedules::LintText(*report));
  if (!printed.ok()) return PrintError(printed, flags.output);
  return report->num_errors() > 0 ? kExitNegative : kExitOk;
}

}  // namespace weir::cli
