// SPDX-License-Identifier: Apache-2.0
// Writes reports of stored results, and of scenarios that it simulates.
#include "results/report/report.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "cli/options/messages.h"
#include "cli/options/output_files.h"
#include "cli/weir/commands.h"
#include "cli/weir/document_report.h"
#include "cli/weir/envelope.h"
#include "cli/weir/explain_run.h"
#include "cli/weir/file_kind.h"
#include "cli/weir/several_runs.h"
#include "cli/weir/stored_results.h"
#include "plan/sensitivity/sensitivity.h"
#include "plan/sweep/collect.h"
#include "plan/sweep/sweep_views.h"
#include "results/store.h"
#include "results/views/explanation.h"

namespace weir::cli {
namespace {

constexpr char kExpectedFiles[] =
    "a file written by --out or by --format json, the folder of a sweep, or a "
    "scenario";

// Refuses options of a scenario with a file of results.
absl::Status CheckStored(const Flags& flags) {
  if (HasScenarioFlags(flags.scenario)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "command line: ", flags.scenario.scenario,
        " is a result, expected no options of a scenario with it"));
  }
  return CheckOutputs(flags.output, /*folders=*/false);
}

absl::StatusOr<std::vector<Result>> Load(const Flags& flags) {
  RETURN_IF_ERROR(CheckStored(flags));
  ASSIGN_OR_RETURN(std::vector<Result> results,
                   LoadSelected(flags.scenario.scenario, flags.result));
  if (flags.flops.empty()) return results;
  for (Result& result : results) result.set_flops_formula(flags.flops);
  return results;
}

int WriteAll(std::vector<Result> all, const OutputFlags& output) {
  Results results;
  for (Result& result : all) *results.add_results() = std::move(result);
  PrintWarnings(results, output);
  const absl::Status written = WriteReport(output, results);
  return written.ok() ? kExitOk : PrintError(written, output);
}

int WriteExplained(const results::Explanation& explanation,
                   const Flags& flags) {
  Results results;
  *results.add_results() = explanation.result;
  PrintWarnings(results, flags.output);
  const absl::Status written = WriteDocumentReport(
      flags.output,
      [&] { return results::ExplanationJson(flags.command, explanation); },
      {&explanation.result, 1});
  return written.ok() ? kExitOk : PrintError(written, flags.output);
}

int SimulateAndWrite(const Flags& flags) {
  if (!flags.result.empty()) {
    return PrintError(
        absl::InvalidArgumentError(
            "command line: --result needs a file written by --out"),
        flags.output);
  }
  const auto work = ResolveAll(flags);
  if (!work.ok()) return PrintError(work.status(), flags.output);
  const int refused =
      work->refused.ok() ? kExitOk : PrintError(work->refused, flags.output);
  Outcome outcome = SimulateAll(work->jobs, flags.flops, flags.output);
  for (const std::string& warning : outcome.warnings) {
    PrintWarning(warning, flags.output);
  }
  int code = std::max(outcome.exit_code, refused);
  if (outcome.results.empty()) return code;
  // The page of one run has its sensitivities, too.
  if (work->jobs.size() == 1 && outcome.results.size() == 1 &&
      plan::CheckHasFigures(work->jobs[0].scenario).ok()) {
    const auto explanation =
        ExplainRun(work->jobs[0].scenario, outcome.results[0],
                   /*measured_seconds=*/0, flags);
    if (explanation.ok()) {
      return std::max(code, WriteExplained(*explanation, flags));
    }
    // Interrupted: without them.
    code = std::max<int>(code, PrintError(explanation.status(), flags.output));
    if (!absl::IsCancelled(explanation.status())) return code;
  }
  return std::max(code, WriteAll(std::move(outcome.results), flags.output));
}

// Returns the JSON of a file or of the points in a folder.
absl::StatusOr<std::string> ReadDocument(const std::string& path,
                                         FileKind::Type type) {
  if (type == FileKind::Type::kJson) return ReadFile(path);
  const auto collected = plan::CollectShards(path);
  if (collected.ok()) {
    return Envelope(absl::StrCat("weir collect ", path), "{}",
                    plan::SweepJson(*collected));
  }
  if (!absl::IsNotFound(collected.status())) return collected.status();
  return absl::NotFoundError(
      absl::StrCat(path, ": is a folder without points of a sweep, expected ",
                   kExpectedFiles));
}

int ReportDocument(const Flags& flags, FileKind::Type type) {
  const std::string& path = flags.scenario.scenario;
  absl::Status status = CheckStored(flags);
  if (status.ok() && !flags.result.empty()) {
    status = absl::InvalidArgumentError(
        absl::StrCat("command line: --result needs a file written by --out, ",
                     path, " is another"));
  }
  if (!status.ok()) return PrintError(status, flags.output);
  const auto document = ReadDocument(path, type);
  if (!document.ok()) return PrintError(document.status(), flags.output);
  const auto page = results::DocumentHtml(path, *document);
  if (!page.ok()) return PrintError(page.status(), flags.output);
  status = WriteReportPage(flags.output, *page);
  return status.ok() ? kExitOk : PrintError(status, flags.output);
}

int RefuseFile(const Flags& flags, const std::string& kind) {
  Problems problems(flags.scenario.scenario);
  problems.Add("", absl::StrCat("is ", kind, ", expected ", kExpectedFiles));
  return PrintError(problems.ToStatus(), flags.output);
}

}  // namespace

int RunReport(const Flags& flags) {
  const absl::Status named = CheckReportPath("--output", flags.output.report);
  if (!named.ok()) return PrintError(named, flags.output);
  const std::string& path = flags.scenario.scenario;
  if (path.empty() && !HasScenarioFlags(flags.scenario)) {
    return PrintError(
        absl::InvalidArgumentError(absl::StrCat(
            "command line: there is no input, expected ", kExpectedFiles,
            ", such as run.pb after weir import TRACE -o run.pb")),
        flags.output);
  }
  if (!results::IsResultFile(path)) {
    const FileKind kind = KindOfFile(path);
    switch (kind.type) {
      case FileKind::Type::kFolder:
      case FileKind::Type::kJson:
        return ReportDocument(flags, kind.type);
      case FileKind::Type::kOther:
        return RefuseFile(flags, kind.text);
      case FileKind::Type::kUnknown:
        break;
    }
    if (!absl::EndsWith(path, ".pb")) return SimulateAndWrite(flags);
  }
  absl::StatusOr<std::vector<Result>> results = Load(flags);
  return results.ok() ? WriteAll(*std::move(results), flags.output)
                      : PrintError(results.status(), flags.output);
}

}  // namespace weir::cli
