// SPDX-License-Identifier: Apache-2.0
// Accuracy of predicted memory by source: intervals that were calibrated
// without the source, and verdicts on whether runs fit. Errors are NotFound if
// a file does not exist, InvalidArgument if it is malformed.
#ifndef WEIR_TOOLS_ACCURACY_MEMORY_ERRORS_H_
#define WEIR_TOOLS_ACCURACY_MEMORY_ERRORS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tools/accuracy/published_sets.h"
#include "tools/accuracy/row_errors.h"

namespace weir {

// Rows with intervals of one source and kind of memory.
struct MemorySource {
  std::string source, device, kind, programs;
  // predicted / measured - 1, and by which factor the interval of each row
  // would have to be wider so that it just contains the measured value.
  std::vector<double> errors, needed;
  bool fitted = true;  // false: nothing is calibrated on it
};

// Returns the factor of all widths with which nine of ten rows are inside,
// where every source has the same weight; 1 without rows.
double WidthFactor(absl::Span<const MemorySource> sources);

// Verdicts of one source: a run is counted once, however many sets have it.
struct SourceVerdicts {
  std::string source, device;
  int num_runs = 0, num_right = 0;
  // Runs whose predicted peak differs from the memory of the GPU by more than
  // 5 % of it.
  int num_clear = 0, num_clear_right = 0;
  std::vector<std::string> clear_wrong;  // "set line 3"
};

absl::StatusOr<std::vector<MemorySource>> MemorySources(
    absl::Span<const PublishedSet> sets, const std::string& folder);
absl::StatusOr<std::vector<SourceVerdicts>> VerdictsBySource(
    absl::Span<const PublishedSet> sets, const std::string& folder);

// Returns both as Markdown, with explanations.
std::string MemoryTables(absl::Span<const MemorySource> sources,
                         absl::Span<const SourceVerdicts> verdicts);

}  // namespace weir

#endif  // WEIR_TOOLS_ACCURACY_MEMORY_ERRORS_H_
