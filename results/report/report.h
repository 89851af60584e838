// SPDX-License-Identifier: Apache-2.0
// Results as one HTML file that needs no network and no other file.
#ifndef WEIR_RESULTS_REPORT_REPORT_H_
#define WEIR_RESULTS_REPORT_REPORT_H_

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "results/report/resources.h"
#include "results/result.pb.h"

namespace weir::results {

struct ReportOptions {
  // Slices of all timelines together, above which further pipelines of a result
  // are left out (at least one per result is shown).
  size_t max_slices = 3'000'000;
  // By result; empty: the sections about kernels and shared links are absent.
  std::vector<RunResources> resources;
};

// Returns the report of one result, or a comparison of several. Results without
// a timeline have no timeline in it. Returns InvalidArgument without results,
// or if a timeline is invalid (results/validate.h).
absl::StatusOr<std::string> ReportHtml(std::span<const Result> results,
                                       const ReportOptions& options = {});

// Returns the report of a document (document.h), named `label` in messages, and
// below it of its runs, if there are any. Returns the errors of ReadDocument,
// and of ReportHtml.
absl::StatusOr<std::string> DocumentHtml(absl::string_view label,
                                         absl::string_view document,
                                         std::span<const Result> results = {},
                                         const ReportOptions& options = {});

// Return the uncompressed data of a report, see data_block.h; for tests. Errors
// are those of ReportHtml and DocumentHtml.
absl::StatusOr<std::string> ReportData(std::span<const Result> results,
                                       const ReportOptions& options = {});
absl::StatusOr<std::string> DocumentData(absl::string_view label,
                                         absl::string_view document,
                                         std::span<const Result> results = {},
                                         const ReportOptions& options = {});

// Returns the page of the data. Requires: `data` is a block of DataBlock.
std::string ReportPage(absl::string_view data);

// Returns the page of "weir live" with a section of controls (web/src/live.ts).
// Only this page may send requests, to the server that it came from.
std::string LivePage(absl::string_view controls);

}  // namespace weir::results

#endif  // WEIR_RESULTS_REPORT_REPORT_H_
