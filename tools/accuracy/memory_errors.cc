// SPDX-License-Identifier: Apache-2.0
#include "tools/accuracy/memory_errors.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "tools/accuracy/source_errors.h"

namespace weir {
namespace {

constexpr double kNineTenths = 0.9;
constexpr double kClearMargin = 0.05;

absl::StatusOr<RowErrors> RowsOf(const PublishedSet& set,
                                 const std::string& folder) {
  return LoadRowErrors(absl::StrCat(folder, "/", set.name, ".csv"),
                       set.quantity);
}

// Returns the factor of the width with which the measured value is at the end
// of its interval.
double NeededWidth(const RowErrors& rows, size_t i) {
  const double off = rows.measured[i] - rows.predicted[i];
  const double width = off > 0 ? rows.high[i] - rows.predicted[i]
                               : rows.predicted[i] - rows.low[i];
  return width > 0 ? std::abs(off) / width : 0;
}

double PartInside(const MemorySource& source, double factor) {
  const auto inside =
      std::count_if(source.needed.begin(), source.needed.end(),
                    [&](double needed) { return needed <= factor; });
  return 1.0 * inside / source.needed.size();
}

std::string Percent(double part) {
  return absl::StrFormat("%.1f %%", 100 * part);
}

std::string IntervalTable(absl::Span<const MemorySource> sources) {
  std::string out =
      "| device | source | program | quantity | rows | mean abs. error | bias "
      "| worst | inside 90 % | width without it | inside |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|\n";
  for (const MemorySource& one : sources) {
    double mean = 0, bias = 0, worst = 0;
    for (double error : one.errors) {
      mean += std::abs(error) / one.errors.size();
      bias += error / one.errors.size();
      if (std::abs(error) > std::abs(worst)) worst = error;
    }
    std::vector<MemorySource> others;
    for (const MemorySource& other : sources) {
      if (other.source != one.source) others.push_back(other);
    }
    const double factor = WidthFactor(others);
    absl::StrAppend(
        &out, "| ", one.device, " | ", one.source, " | ", one.programs, " | ",
        one.kind, " | ", one.errors.size(), " | ", Percent(mean),
        absl::StrFormat(" | %+.1f %% | %+.1f %% | ", 100 * bias, 100 * worst),
        absl::StrFormat("%.0f %% | x %.2f | %.0f %% |\n",
                        100 * PartInside(one, 1), factor,
                        100 * PartInside(one, factor)));
  }
  absl::StrAppend(
      &out, absl::StrFormat("\nNine of ten rows of all sources (equal weights) "
                            "are inside with a width of x %.2f.\n",
                            WidthFactor(sources)));
  return out;
}

std::string VerdictTable(absl::Span<const SourceVerdicts> verdicts) {
  std::string out =
      "| device | source | runs | correct | margin above 5 % | correct | wrong "
      "with such a margin |\n|---|---|---|---|---|---|---|\n";
  SourceVerdicts all;
  const auto add = [&](const SourceVerdicts& one, const std::string& wrong) {
    absl::StrAppend(
        &out, "| ", one.device, " | ", one.source, " | ", one.num_runs, " | ",
        one.num_right, " | ", one.num_clear, " | ",
        one.num_clear == 0
            ? "-"
            : absl::StrCat(one.num_clear_right, " (",
                           Percent(1.0 * one.num_clear_right / one.num_clear),
                           ")"),
        " | ", wrong, " |\n");
  };
  for (const SourceVerdicts& one : verdicts) {
    all.num_runs += one.num_runs;
    all.num_right += one.num_right;
    all.num_clear += one.num_clear;
    all.num_clear_right += one.num_clear_right;
    add(one, absl::StrJoin(one.clear_wrong, ", "));
  }
  all.device = "all";
  add(all, "");
  return out;
}

}  // namespace

double WidthFactor(absl::Span<const MemorySource> sources) {
  // Each row weighs 1 / (rows of its source).
  std::vector<std::pair<double, double>> weighted;
  double sum = 0;
  for (const MemorySource& source : sources) {
    if (!source.fitted || source.needed.empty()) continue;
    sum += 1;
    for (double needed : source.needed) {
      weighted.push_back({needed, 1.0 / source.needed.size()});
    }
  }
  std::sort(weighted.begin(), weighted.end());
  double inside = 0;
  for (const auto& [needed, weight] : weighted) {
    inside += weight;
    if (inside >= kNineTenths * sum * (1 - 1e-9)) return needed;
  }
  return 1;
}

absl::StatusOr<std::vector<MemorySource>> MemorySources(
    absl::Span<const PublishedSet> sets, const std::string& folder) {
  std::vector<MemorySource> sources;
  for (const PublishedSet& set : sets) {
    if (set.source.empty() || IsPartOfAnother(set, sets)) continue;
    ASSIGN_OR_RETURN(const MeasuredKind kind, KindOfQuantity(set.quantity));
    if (kind == MeasuredKind::kStepTime) continue;
    ASSIGN_OR_RETURN(const RowErrors rows, RowsOf(set, folder));
    const std::string name = NameOfKind(kind);
    auto at = std::find_if(
        sources.begin(), sources.end(), [&](const MemorySource& one) {
          return one.source == set.source && one.device == set.device &&
                 one.kind == name;
        });
    if (at == sources.end()) {
      at = sources.insert(at, MemorySource());
      at->source = set.source;
      at->device = set.device;
      at->kind = name;
      at->programs = set.program;
    } else if (!absl::StrContains(at->programs, set.program)) {
      absl::StrAppend(&at->programs, ", ", set.program);
    }
    at->fitted = at->fitted && set.not_fitted.empty();
    for (size_t i = 0; i < rows.lines.size(); ++i) {
      if (i >= rows.high.size() || !(rows.high[i] > 0)) continue;
      at->errors.push_back(rows.predicted[i] / rows.measured[i] - 1);
      at->needed.push_back(NeededWidth(rows, i));
    }
  }
  return sources;
}

absl::StatusOr<std::vector<SourceVerdicts>> VerdictsBySource(
    absl::Span<const PublishedSet> sets, const std::string& folder) {
  std::vector<SourceVerdicts> sources;
  std::set<std::pair<std::string, int>> seen;
  for (const PublishedSet& set : sets) {
    if (set.source.empty() || set.scenario.empty() ||
        IsPartOfAnother(set, sets)) {
      continue;
    }
    ASSIGN_OR_RETURN(const RowErrors rows, RowsOf(set, folder));
    auto at = std::find_if(
        sources.begin(), sources.end(), [&](const SourceVerdicts& one) {
          return one.source == set.source && one.device == set.device;
        });
    if (at == sources.end()) {
      at = sources.insert(at, SourceVerdicts());
      at->source = set.source;
      at->device = set.device;
    }
    for (const FitRow& row : rows.verdicts) {
      // The same measured run with another scenario counts again.
      if (!seen.insert(
                   {absl::StrCat(set.measured, " ", set.scenario), row.line})
               .second) {
        continue;
      }
      const bool right = row.predicted_to_fit == row.ran;
      const bool clear = std::abs(row.memory_use - 1) > kClearMargin;
      ++at->num_runs;
      if (right) ++at->num_right;
      if (!clear) continue;
      ++at->num_clear;
      if (right) {
        ++at->num_clear_right;
      } else {
        at->clear_wrong.push_back(absl::StrCat(set.name, " line ", row.line));
      }
    }
  }
  return sources;
}

std::string MemoryTables(absl::Span<const MemorySource> sources,
                         absl::Span<const SourceVerdicts> verdicts) {
  return absl::StrCat(
      R"(## Memory

Nothing but the widths of intervals is fitted to measured memory. "inside 90 %" is
the percentage of rows inside the intervals as weir prints them; "width without
it" is the factor of all widths with which nine of ten rows of the other sources
are inside (every source has the same weight), and "inside" the percentage of the
source's rows inside intervals of that width. Errors are predicted / measured - 1.

)",
      IntervalTable(sources), R"(
Verdicts: runs, including those that ran out of memory, for which weir predicts
correctly whether they fit. Their margin is the distance of the predicted peak from
the memory of the GPU.

)",
      VerdictTable(verdicts));
}

}  // namespace weir
