// SPDX-License-Identifier: Apache-2.0
// Errors of whole steps and memory by source (paper, recipe collection or blog)
// and device, from the rows of all its sets.
#ifndef WEIR_TOOLS_ACCURACY_SOURCE_ERRORS_H_
#define WEIR_TOOLS_ACCURACY_SOURCE_ERRORS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/error_statistics.h"
#include "tools/accuracy/published_sets.h"

namespace weir {

enum class MeasuredKind {
  kStepTime,         // also from a throughput, whose inverse is compared
  kAllocatedMemory,  // what the framework's allocator handed out
  kReservedMemory,   // what the allocator held
  kWholeGpuMemory,   // what nvidia-smi shows
};

// Returns the kind of a quantity of "weir validate", or InvalidArgument.
absl::StatusOr<MeasuredKind> KindOfQuantity(absl::string_view quantity);

std::string NameOfKind(MeasuredKind kind);  // "allocated memory"

// Returns true if another set contains the rows of this one.
bool IsPartOfAnother(const PublishedSet& set,
                     absl::Span<const PublishedSet> sets);

// Returns true for throughputs, which are larger for faster steps.
bool IsRate(absl::string_view quantity);

struct SourceErrors {
  std::string source, device;
  MeasuredKind kind = MeasuredKind::kStepTime;
  std::vector<std::string> programs;  // without repetition
  // Relative errors of step time or bytes: below 0 is predicted too fast, or
  // too little memory. worst_row is meaningless.
  ErrorStatistics statistics;
  std::string worst_run;  // "set line 3: run"
  int num_intervals = 0;  // rows that have an interval
  int num_inside = 0;     // of these: measured inside
  // Runs of sets that predict memory, including those that did not fit; the
  // second are predicted correctly.
  int num_verdicts = 0, num_right_verdicts = 0;
  bool fitted = false;  // parameters were fitted to one of its sets
};

// Computes the errors from FOLDER/SET.csv, ordered by kind and then as in
// `sets`. Leaves out sets without source, and sets that are part of another.
absl::StatusOr<std::vector<SourceErrors>> ErrorsBySource(
    absl::Span<const PublishedSet> sets, const std::string& folder);

// Returns a Markdown table with an explanation above it.
std::string SourceErrorsTable(absl::Span<const SourceErrors> sources);

}  // namespace weir

#endif  // WEIR_TOOLS_ACCURACY_SOURCE_ERRORS_H_
