// SPDX-License-Identifier: Apache-2.0
// --report of commands whose page shows their JSON output.
#ifndef WEIR_CLI_WEIR_DOCUMENT_REPORT_H_
#define WEIR_CLI_WEIR_DOCUMENT_REPORT_H_

#include <functional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "cli/options/flags.h"
#include "results/result.pb.h"

namespace weir::cli {

// Checks, before long work, that --report can be written. Returns
// InvalidArgument if not.
absl::Status CheckDocumentReport(const OutputFlags& output);

// Writes --report, if it is given, and prints a note. `document` returns the
// output of --format json (results/report/document.h). `runs` are shown below
// it. Returns the errors of results::DocumentHtml and WriteOutput.
absl::Status WriteDocumentReport(const OutputFlags& output,
                                 const std::function<std::string()>& document,
                                 std::span<const Result> runs = {});

}  // namespace weir::cli

#endif  // WEIR_CLI_WEIR_DOCUMENT_REPORT_H_
