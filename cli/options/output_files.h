// SPDX-License-Identifier: Apache-2.0
// The files that commands write in addition to standard output.
#ifndef WEIR_CLI_OPTIONS_OUTPUT_FILES_H_
#define WEIR_CLI_OPTIONS_OUTPUT_FILES_H_

#include <functional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/output_file.h"
#include "cli/options/flags.h"
#include "results/report/report.h"
#include "results/result.pb.h"
#include "results/trace/trace.h"

namespace weir::cli {

// Returns which files the flags allow to replace, see base/output_file.h.
ReplaceOptions ReplaceOf(
    const OutputFlags& output,
    std::function<bool(absl::string_view)> is_own_line = nullptr);

// Returns true if the timeline is shown or written.
bool NeedsTimeline(const OutputFlags& output);

// Checks, before hours of work, that --out, --trace, --report and the picture
// of draw can be written and are different files. `folders`: --trace may name a
// folder. Returns InvalidArgument if not, Unavailable if the program that makes
// PDF and PNG is not installed.
absl::Status CheckOutputs(const OutputFlags& output, bool folders);

// Checks, before hours of work, that the ending of a trace file names a format.
// `folders`: a path that ends with '/' is valid, too. Returns InvalidArgument
// if not.
absl::Status CheckTracePath(absl::string_view option, const std::string& path,
                            bool folders);

// Writes the timeline in the format that the ending names; in a folder, to a
// .pftrace file named after the schedule. Prints a note about the file. Returns
// InvalidArgument if it cannot be written, FailedPrecondition if the result has
// no timeline.
absl::Status WriteTrace(const std::string& path, const Result& result,
                        const OutputFlags& output);

// The same for two results, each rank's rows under each other.
absl::Status WriteTwoRows(const std::string& path, const results::TwoRows& rows,
                          const OutputFlags& output);

// Checks, before hours of work, that the name of a report ends in .html.
// Returns InvalidArgument if not.
absl::Status CheckReportPath(absl::string_view option, const std::string& path);

// Returns options with the kernels and links of these results.
results::ReportOptions ReportOptionsOf(std::span<const Result> results);

// Writes --report. Prints a note about the file. Returns the errors of
// results::ReportHtml and WriteOutput.
absl::Status WriteReport(const OutputFlags& output, const Results& results);

// Writes a page to --report. Prints a note about the file. Returns the errors
// of WriteOutput.
absl::Status WriteReportPage(const OutputFlags& output,
                             const std::string& page);

// Writes --out, --report and, if `traced` is not null, --trace; tries all.
// Prints a note about each file. Returns InvalidArgument with all their errors.
absl::Status WriteOutputs(const OutputFlags& output, const Results& results,
                          const Result* traced);

// Prints the warnings, which a table or a CSV does not contain.
void PrintWarnings(const Results& results, const OutputFlags& output);

}  // namespace weir::cli

#endif  // WEIR_CLI_OPTIONS_OUTPUT_FILES_H_
