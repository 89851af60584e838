// SPDX-License-Identifier: Apache-2.0
#include "cli/weir/document_report.h"

#include "base/output_file.h"
#include "base/status_macros.h"
#include "cli/options/output_files.h"
#include "results/report/report.h"

namespace weir::cli {

absl::Status CheckDocumentReport(const OutputFlags& output) {
  RETURN_IF_ERROR(CheckReportPath("--report", output.report));
  return output.report.empty() ? absl::OkStatus()
                               : CheckOutput(output.report, ReplaceOf(output));
}

absl::Status WriteDocumentReport(const OutputFlags& output,
                                 const std::function<std::string()>& document,
                                 std::span<const Result> runs) {
  if (output.report.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string page,
                   results::DocumentHtml("--report", document(), runs,
                                         ReportOptionsOf(runs)));
  return WriteReportPage(output, page);
}

}  // namespace weir::cli
