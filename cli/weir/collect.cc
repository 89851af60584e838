// SPDX-License-Identifier: Apache-2.0
// "weir collect": the shards of a sweep as one table.
#include "plan/sweep/collect.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/output_file.h"
#include "base/status_macros.h"
#include "base/text_table.h"
#include "cli/options/messages.h"
#include "cli/options/output_files.h"
#include "cli/weir/commands.h"
#include "cli/weir/document_report.h"
#include "cli/weir/envelope.h"
#include "plan/sweep/sweep_views.h"

namespace weir::cli {
namespace {

constexpr size_t kNumNamed = 5;

absl::Status CheckCollectOutputs(const Flags& flags) {
  RETURN_IF_ERROR(CheckDocumentReport(flags.output));
  return weir::CheckOutputs(
      {{"--csv", flags.sweep.csv, ReplaceOf(flags.output, plan::IsSweepHeader)},
       {"--sqlite", flags.sweep.sqlite, ReplaceOf(flags.output)},
       {"--report", flags.output.report, ReplaceOf(flags.output)}});
}

std::string JsonOf(const Flags& flags, const plan::CollectedSweep& collected) {
  return Envelope(flags.command, "{}", plan::SweepJson(collected));
}

absl::Status Write(const Flags& flags, const plan::CollectedSweep& collected) {
  absl::Status status;
  if (!flags.sweep.csv.empty()) {
    status.Update(WriteOutput(flags.sweep.csv, plan::SweepCsv(collected),
                              ReplaceOf(flags.output, plan::IsSweepHeader)));
  }
  if (!flags.sweep.sqlite.empty()) {
    status.Update(plan::WriteSqlite(flags.sweep.sqlite, collected));
  }
  status.Update(WriteDocumentReport(flags.output,
                                    [&] { return JsonOf(flags, collected); }));
  return status;
}

std::string View(const Flags& flags, const plan::CollectedSweep& collected) {
  switch (flags.output.format) {
    case OutputFlags::Format::kCsv:
      return plan::SweepCsv(collected);
    case OutputFlags::Format::kJson:
      return JsonOf(flags, collected);
    case OutputFlags::Format::kTable:
      break;
  }
  return absl::StrCat(WrapText(plan::CollectedText(collected)), "\n",
                      plan::PointsTable(collected, flags.sweep.top));
}

void Warn(const Flags& flags, const plan::CollectedSweep& collected) {
  const plan::SweepCounts counts = plan::CountsOf(collected);
  const uint32_t num_missing = counts.num_points - counts.num_ended();
  if (num_missing > 0) {
    PrintWarning(
        absl::StrCat(
            num_missing, " of ", counts.num_points, " points are missing: ",
            absl::StrJoin(plan::MissingPoints(collected, kNumNamed), ", "),
            num_missing > kNumNamed ? ", ..." : "",
            " (weir sweep --resume runs them)"),
        flags.output);
  }
  if (counts.num_failed > 0) {
    PrintWarning(absl::StrCat(counts.num_failed, " points failed: ",
                              plan::ReasonText(*counts.failure),
                              " (weir sweep --resume runs them again)"),
                 flags.output);
  }
  for (const std::string& damage : collected.damage) {
    PrintWarning(absl::StrCat(damage, "; this record is ignored"),
                 flags.output);
  }
}

}  // namespace

int RunCollect(const Flags& flags) {
  const absl::Status checked = CheckCollectOutputs(flags);
  if (!checked.ok()) return PrintError(checked, flags.output);
  absl::StatusOr<plan::CollectedSweep> collected;
  {
    const ElapsedLine line(flags.output, "reading shards");
    collected = plan::CollectShards(flags.name);
  }
  if (!collected.ok()) return PrintError(collected.status(), flags.output);
  const absl::Status written = Write(flags, *collected);
  if (!written.ok()) return PrintError(written, flags.output);
  absl::StatusOr<std::string> view = View(flags, *collected);
  if (!flags.sweep.pivot.empty()) {
    view = plan::PivotTable(*collected, flags.sweep.pivot, flags.sweep.metric);
    if (!view.ok()) {
      return PrintError(absl::InvalidArgumentError(absl::StrCat(
                            "weir collect: ", view.status().message())),
                        flags.output);
    }
  }
  const absl::Status printed = PrintResult(*view);
  if (!printed.ok()) return PrintError(printed, flags.output);
  Warn(flags, *collected);
  if (!flags.sweep.complete) return kExitOk;
  if (!plan::IsComplete(*collected)) return kExitNegative;
  const std::string none_ran = plan::NoneRanText(plan::CountsOf(*collected));
  if (none_ran.empty()) return kExitOk;
  PrintWarning(none_ran, flags.output);
  return kExitNegative;
}

}  // namespace weir::cli
