// SPDX-License-Identifier: Apache-2.0
#include "cli/options/output_files.h"

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "base/files.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "cli/options/messages.h"
#include "cli/options/picture_files.h"
#include "plan/resources/run_resources.h"
#include "results/draw/figures.h"
#include "results/report/report.h"
#include "results/store.h"
#include "results/summary.h"

namespace weir::cli {
namespace {

// Returns the picture of "weir draw --kind timeline".
absl::StatusOr<std::string> TimelinePicture(
    const Result& result, absl::Span<const std::string> names) {
  ASSIGN_OR_RETURN(results::TimelineRows rows,
                   results::RowsOfResult(result, names));
  ASSIGN_OR_RETURN(const results::Drawing drawing,
                   results::TimelineFigure(
                       {&rows, 1}, {.width = results::kTwoColumnsWidth}));
  return results::SvgOf(drawing);
}

struct TraceFormat {
  absl::string_view extension;
  absl::StatusOr<std::string> (*write)(const Result&,
                                       absl::Span<const std::string> names);
  // Adds kOutputMark; null if `write` does.
  std::string (*mark)(absl::string_view trace);
  absl::string_view viewers;
};
constexpr TraceFormat kTraceFormats[] = {
    {".pftrace", results::PerfettoTrace, nullptr, "at https://ui.perfetto.dev"},
    {".json", results::ChromeTrace, MarkJson,
     "at https://ui.perfetto.dev or speedscope"},
    {".svg", TimelinePicture, MarkSvg, "in a browser"}};
// Written into folders.
constexpr const TraceFormat& kDefaultTraceFormat = kTraceFormats[0];

// Notes that "show" and "trace" read the file.
absl::Status WriteResults(const OutputFlags& output, const Results& results) {
  RETURN_IF_ERROR(results::SaveResults(output.out, results, ReplaceOf(output)));
  PrintNote(absl::StrCat("wrote ", output.out, " (weir show, weir trace)"),
            output);
  return absl::OkStatus();
}

// Returns the name without folders: that of a schedule file contains its path.
absl::string_view FileNameOf(absl::string_view schedule) {
  return schedule.substr(schedule.rfind('/') + 1);
}

// Returns the format that the extension names, or null.
const TraceFormat* FormatOf(absl::string_view path) {
  for (const TraceFormat& format : kTraceFormats) {
    if (absl::EndsWith(path, format.extension)) return &format;
  }
  return nullptr;
}

// Requires: CheckTracePath(file) is OK.
absl::Status WriteTimeline(const std::string& file, const Result& result,
                           absl::Span<const std::string> names,
                           const std::string& what, const OutputFlags& output) {
  const TraceFormat& format = *FormatOf(file);
  ASSIGN_OR_RETURN(std::string trace, format.write(result, names));
  if (format.mark != nullptr) trace = format.mark(trace);
  RETURN_IF_ERROR(WriteOutput(file, trace, ReplaceOf(output)));
  PrintNote(absl::StrCat("wrote ", file, " (", what, "; open it ",
                         format.viewers, ")"),
            output);
  return absl::OkStatus();
}

}  // namespace

ReplaceOptions ReplaceOf(const OutputFlags& output,
                         std::function<bool(absl::string_view)> is_own_line) {
  ReplaceOptions options;
  options.force = output.force;
  options.is_own_line = std::move(is_own_line);
  return options;
}

bool NeedsTimeline(const OutputFlags& output) {
  return !output.out.empty() || !output.trace.empty() ||
         !output.report.empty() || !output.picture.empty() || output.timeline;
}

absl::Status CheckOutputs(const OutputFlags& output, bool folders) {
  RETURN_IF_ERROR(CheckTracePath("--trace", output.trace, folders));
  RETURN_IF_ERROR(CheckReportPath("--report", output.report));
  RETURN_IF_ERROR(CheckPicturePath("--output", output.picture));
  const ReplaceOptions replace = ReplaceOf(output);
  std::string trace = output.trace;
  // The file in a folder is named after the schedule, which is not known yet:
  // it may be any trace in that folder.
  if (absl::EndsWith(trace, "/")) {
    RETURN_IF_ERROR(CheckWritable(trace + "trace"));
    trace = absl::EndsWith(output.out, kDefaultTraceFormat.extension)
                ? trace + std::string(FileNameOf(output.out))
                : "";
  }
  return weir::CheckOutputs({{"--out", output.out, replace},
                             {"--trace", trace, replace},
                             {"--report", output.report, replace},
                             {"--output", output.picture, replace}});
}

absl::Status CheckTracePath(absl::string_view option, const std::string& path,
                            bool folders) {
  if (path.empty() || FormatOf(path) != nullptr ||
      (folders && absl::EndsWith(path, "/"))) {
    return absl::OkStatus();
  }
  std::vector<absl::string_view> extensions;
  for (const TraceFormat& format : kTraceFormats) {
    extensions.push_back(format.extension);
  }
  Problems problems("command line");
  problems.Add(option,
               absl::StrCat("is ", path, ", expected a name ending in ",
                            absl::StrJoin(extensions, ", "),
                            folders ? ", or a folder ending in /" : ""));
  return problems.ToStatus();
}

absl::Status WriteTrace(const std::string& path, const Result& result,
                        const OutputFlags& output) {
  const std::string file =
      absl::EndsWith(path, "/")
          ? absl::StrCat(path, FileNameOf(result.schedule()),
                         kDefaultTraceFormat.extension)
          : path;
  const double from_seconds = result.timeline().from_seconds();
  ASSIGN_OR_RETURN(const Result traced,
                   results::SelectGpus(result, output.traced));
  return WriteTimeline(
      file, traced, /*names=*/{},
      absl::StrCat(
          "timeline of ", results::RowName(result),
          from_seconds > 0
              ? absl::StrCat(" from ", FormatSeconds(from_seconds), " on")
              : ""),
      output);
}

absl::Status WriteTwoRows(const std::string& path, const results::TwoRows& rows,
                          const OutputFlags& output) {
  return WriteTimeline(path, rows.result, rows.names,
                       "predicted and measured timelines", output);
}

absl::Status CheckReportPath(absl::string_view option,
                             const std::string& path) {
  if (path.empty() || absl::EndsWith(path, ".html")) return absl::OkStatus();
  Problems problems("command line");
  problems.Add(option,
               absl::StrCat("is ", path, ", expected a name ending in .html"));
  return problems.ToStatus();
}

results::ReportOptions ReportOptionsOf(std::span<const Result> results) {
  results::ReportOptions options;
  for (const Result& result : results) {
    options.resources.push_back(plan::ResourcesOf(result));
  }
  return options;
}

absl::Status WriteReport(const OutputFlags& output, const Results& results) {
  const std::vector<Result> all(results.results().begin(),
                                results.results().end());
  ASSIGN_OR_RETURN(const std::string page,
                   results::ReportHtml(all, ReportOptionsOf(all)));
  return WriteReportPage(output, page);
}

absl::Status WriteReportPage(const OutputFlags& output,
                             const std::string& page) {
  RETURN_IF_ERROR(WriteOutput(output.report, page, ReplaceOf(output)));
  PrintNote(absl::StrCat("wrote ", output.report, " (open it in a browser)"),
            output);
  return absl::OkStatus();
}

absl::Status WriteOutputs(const OutputFlags& output, const Results& results,
                          const Result* traced) {
  std::vector<std::string> messages;
  const auto keep = [&](const absl::Status& status) {
    if (!status.ok()) messages.emplace_back(status.message());
  };
  if (!output.out.empty()) keep(WriteResults(output, results));
  if (!output.report.empty()) keep(WriteReport(output, results));
  if (!output.trace.empty() && traced != nullptr) {
    keep(WriteTrace(output.trace, *traced, output));
  }
  if (messages.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(messages, "\n"));
}

void PrintWarnings(const Results& results, const OutputFlags& output) {
  const std::vector<Result> all(results.results().begin(),
                                results.results().end());
  for (const std::string& warning : results::MergeWarnings(all)) {
    PrintWarning(warning, output);
  }
}

}  // namespace weir::cli
