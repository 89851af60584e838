// SPDX-License-Identifier: Apache-2.0
#include "tools/accuracy/source_errors.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "tools/accuracy/row_errors.h"

namespace weir {
namespace {

// A source while its sets are added.
struct Collected {
  SourceErrors errors;
  std::vector<double> relative;
  std::vector<std::string> runs;
};

void AddRows(const PublishedSet& set, const RowErrors& rows, Collected* to) {
  // A throughput is inverted, so that all errors are those of seconds or bytes.
  const bool rate = IsRate(set.quantity);
  for (size_t i = 0; i < rows.lines.size(); ++i) {
    const double ratio = rows.predicted[i] / rows.measured[i];
    to->relative.push_back((rate ? 1 / ratio : ratio) - 1);
    to->runs.push_back(
        absl::StrCat(set.name, " line ", rows.lines[i], ": ", rows.names[i]));
    if (i >= rows.high.size() || !(rows.high[i] > 0)) continue;
    ++to->errors.num_intervals;
    if (rows.low[i] <= rows.measured[i] && rows.measured[i] <= rows.high[i]) {
      ++to->errors.num_inside;
    }
  }
  // Given costs contain no memory.
  if (set.scenario.empty()) return;
  const int num_wrong =
      rows.num_predicted_misfits + static_cast<int>(rows.wrong_misfits.size());
  const int num_runs = static_cast<int>(rows.lines.size()) + rows.num_misfits;
  to->errors.num_verdicts += num_runs;
  to->errors.num_right_verdicts += num_runs - num_wrong;
}

Collected* Find(const PublishedSet& set, MeasuredKind kind,
                std::vector<Collected>* all) {
  for (Collected& one : *all) {
    if (one.errors.source == set.source && one.errors.device == set.device &&
        one.errors.kind == kind) {
      return &one;
    }
  }
  Collected added;
  added.errors.source = set.source;
  added.errors.device = set.device;
  added.errors.kind = kind;
  all->push_back(std::move(added));
  return &all->back();
}

std::string PercentOf(int part, int all) {
  return all == 0 ? "-" : absl::StrFormat("%.0f %%", 100.0 * part / all);
}

constexpr absl::string_view kTableHead =
    R"(| source | device | program | quantity | rows | mean abs. error | bias | worst | inside 90 % | fit verdicts | fitted |
|---|---|---|---|---|---|---|---|---|---|---|
)";

}  // namespace

std::string NameOfKind(MeasuredKind kind) {
  switch (kind) {
    case MeasuredKind::kStepTime:
      return "step time";
    case MeasuredKind::kAllocatedMemory:
      return "allocated memory";
    case MeasuredKind::kReservedMemory:
      return "reserved memory";
    case MeasuredKind::kWholeGpuMemory:
      return "memory of the GPU";
  }
  return "";
}

bool IsPartOfAnother(const PublishedSet& set,
                     absl::Span<const PublishedSet> sets) {
  return std::any_of(sets.begin(), sets.end(), [&](const PublishedSet& other) {
    return other.name == set.part_of;
  });
}

bool IsRate(absl::string_view quantity) {
  for (const char* prefix : {"tflops_", "samples_", "tokens_", "mfu"}) {
    if (absl::StartsWith(quantity, prefix)) return true;
  }
  return false;
}

absl::StatusOr<MeasuredKind> KindOfQuantity(absl::string_view quantity) {
  if (absl::StartsWith(quantity, "step_") || IsRate(quantity)) {
    return MeasuredKind::kStepTime;
  }
  if (absl::StartsWith(quantity, "peak_allocated_") ||
      absl::StartsWith(quantity, "least_allocated_")) {
    return MeasuredKind::kAllocatedMemory;
  }
  if (absl::StartsWith(quantity, "peak_reserved_")) {
    return MeasuredKind::kReservedMemory;
  }
  if (absl::StartsWith(quantity, "peak_memory_")) {
    return MeasuredKind::kWholeGpuMemory;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "quantity is \"", quantity, "\", expected one of a step or of memory"));
}

absl::StatusOr<std::vector<SourceErrors>> ErrorsBySource(
    absl::Span<const PublishedSet> sets, const std::string& folder) {
  std::vector<Collected> all;
  for (const PublishedSet& set : sets) {
    if (set.source.empty() || IsPartOfAnother(set, sets)) continue;
    ASSIGN_OR_RETURN(const MeasuredKind kind, KindOfQuantity(set.quantity));
    ASSIGN_OR_RETURN(const RowErrors rows,
                     LoadRowErrors(absl::StrCat(folder, "/", set.name, ".csv"),
                                   set.quantity));
    Collected* const one = Find(set, kind, &all);
    AddRows(set, rows, one);
    std::vector<std::string>& programs = one->errors.programs;
    if (std::find(programs.begin(), programs.end(), set.program) ==
        programs.end()) {
      programs.push_back(set.program);
    }
    one->errors.fitted = one->errors.fitted || !set.fitted.empty();
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Collected& a, const Collected& b) {
                     return a.errors.kind < b.errors.kind;
                   });
  std::vector<SourceErrors> sources;
  for (Collected& one : all) {
    one.errors.statistics = Summarize(one.relative);
    const int worst = one.errors.statistics.worst_row;
    if (worst >= 0) one.errors.worst_run = one.runs[worst];
    sources.push_back(std::move(one.errors));
  }
  return sources;
}

std::string SourceErrorsTable(absl::Span<const SourceErrors> sources) {
  std::string out(kTableHead);
  for (const SourceErrors& one : sources) {
    const ErrorStatistics& errors = one.statistics;
    absl::StrAppend(
        &out, "| ", one.source, " | ", one.device, " | ",
        absl::StrJoin(one.programs, ", "), " | ", NameOfKind(one.kind), " | ",
        errors.num_rows,
        absl::StrFormat(" | %.1f %% | %+.1f %% | %+.1f %% (",
                        100 * errors.mean_absolute, 100 * errors.bias,
                        100 * errors.worst),
        absl::StrReplaceAll(one.worst_run, {{"|", "\\|"}}), ") | ",
        PercentOf(one.num_inside, one.num_intervals), " | ",
        one.num_verdicts == 0
            ? "-"
            : absl::StrCat(one.num_right_verdicts, " of ", one.num_verdicts),
        " | ", one.fitted ? "yes" : "no", " |\n");
  }
  return out;
}

}  // namespace weir
