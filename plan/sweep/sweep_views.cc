// SPDX-License-Identifier: Apache-2.0
#include "plan/sweep/sweep_views.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/spelling.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "base/text_table.h"
#include "base/units.h"
#include "plan/sweep/fields.h"

namespace weir::plan {
namespace {

using Value = std::optional<double>;

// A quantity of a point, and how it is shown.
struct Metric {
  const char* name;
  const char* title;
  Value (*of)(const SweepOutcome& outcome);
  std::string (*text)(double value);
  bool more_is_better;
};

template <typename Has, typename Get>
Value If(const Has& has, const Get& get) {
  return has ? Value(get) : std::nullopt;
}

const Metric kMetrics[] = {
    {"step_seconds", "step time",
     [](const SweepOutcome& o) { return Value(o.batch_seconds()); },
     FormatSeconds, false},
    {"samples_per_second", "samples/s",
     [](const SweepOutcome& o) {
       return If(o.has_samples_per_second(), o.samples_per_second());
     },
     FormatCount, true},
    {"tokens_per_second", "tokens/s",
     [](const SweepOutcome& o) {
       return If(o.has_tokens_per_second(), o.tokens_per_second());
     },
     FormatCount, true},
    {"tokens_per_second_per_gpu", "tokens/s/GPU",
     [](const SweepOutcome& o) {
       return If(o.has_tokens_per_second() && o.num_gpus() > 0,
                 o.tokens_per_second() / o.num_gpus());
     },
     FormatCount, true},
    {"mfu", "MFU",
     [](const SweepOutcome& o) {
       return If(o.has_model_flops_utilization(), o.model_flops_utilization());
     },
     FormatPercent, true},
    {"bubble", "bubble",
     [](const SweepOutcome& o) {
       return If(o.has_bubble_ratio(), o.bubble_ratio());
     },
     FormatPercent, false},
    {"peak_memory", "peak memory",
     [](const SweepOutcome& o) {
       return If(o.peak_memory_bytes() > 0, o.peak_memory_bytes());
     },
     FormatBytes, false},
};

std::string Cell(const Metric& metric, const SweepOutcome& outcome) {
  const Value value = metric.of(outcome);
  return value.has_value() ? metric.text(*value) : "-";
}

const Metric* FindMetric(absl::string_view name) {
  for (const Metric& metric : kMetrics) {
    if (metric.name == name) return &metric;
  }
  return nullptr;
}

// Points with different batches are compared by their throughput.
double CostOf(const SweepOutcome& outcome) {
  return outcome.has_samples_per_second() && outcome.samples_per_second() > 0
             ? 1 / outcome.samples_per_second()
             : outcome.batch_seconds();
}

std::vector<const SweepOutcome*> BestFirst(const CollectedSweep& collected) {
  std::vector<const SweepOutcome*> done;
  for (const auto& [point, outcome] : collected.outcomes) {
    if (outcome.kind() == SWEEP_DONE) done.push_back(&outcome);
  }
  std::stable_sort(done.begin(), done.end(), [](const auto* a, const auto* b) {
    return std::pair(!a->fits_memory(), CostOf(*a)) <
           std::pair(!b->fits_memory(), CostOf(*b));
  });
  return done;
}

std::map<std::string, std::string> Settings(const CollectedSweep& collected,
                                            uint32_t point) {
  std::map<std::string, std::string> values;
  for (const auto& [field, value] : ShownSettingsOf(collected.sweep, point)) {
    values[field] = value;
  }
  return values;
}

// Returns a line per reason, the most frequent first, at most five.
std::string Reasons(const CollectedSweep& collected) {
  constexpr size_t kMostReasons = 5;
  std::map<std::string, int> counts;
  for (const auto& [point, outcome] : collected.outcomes) {
    if (outcome.kind() == SWEEP_DONE) continue;
    ++counts[absl::StrReplaceAll(
        outcome.error(),
        {{absl::StrCat("point ", point, ": "), ""}, {"\n", "; "}})];
  }
  std::vector<std::pair<std::string, int>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](auto& a, auto& b) { return a.second > b.second; });
  std::string text;
  for (size_t i = 0; i < std::min(sorted.size(), kMostReasons); ++i) {
    absl::StrAppend(&text, sorted[i].second,
                    sorted[i].second == 1 ? " point: " : " points: ",
                    EscapeLine(sorted[i].first), "\n");
  }
  if (sorted.size() > kMostReasons) {
    absl::StrAppend(&text, sorted.size() - kMostReasons, " more reasons\n");
  }
  return text.empty() ? "" : absl::StrCat("\nnot simulated\n", text);
}

// Returns the values of a field in the order of the sweep.
std::vector<std::string> ValuesOf(const CollectedSweep& collected,
                                  const std::string& field) {
  std::vector<std::string> values;
  for (uint32_t point = 0; point < collected.sweep.num_points; ++point) {
    const auto settings = Settings(collected, point);
    const auto at = settings.find(field);
    const std::string value = at == settings.end() ? "" : at->second;
    if (!absl::c_linear_search(values, value)) values.push_back(value);
  }
  return values;
}

bool VariesInGpus(const std::vector<const SweepOutcome*>& outcomes) {
  return std::any_of(outcomes.begin(), outcomes.end(),
                     [&](const auto* outcome) {
                       return outcome->num_gpus() != outcomes[0]->num_gpus();
                     });
}

}  // namespace

std::string PointsTable(const CollectedSweep& collected, uint32_t num_rows) {
  TextTable table;
  table.header = {"point"};
  table.left = {false};
  for (const std::string& field : collected.sweep.fields) {
    table.header.push_back(ShortField(field));
    table.left.push_back(true);
  }
  const std::vector<const SweepOutcome*> done = BestFirst(collected);
  const bool shows_gpus = VariesInGpus(done);
  if (shows_gpus) {
    table.header.push_back("gpus");
    table.left.push_back(false);
  }
  table.optional.assign(table.header.size(), 0);
  int optional = 0;
  for (const Metric& metric : kMetrics) {
    table.header.push_back(metric.title);
    table.left.push_back(false);
    const bool needed = optional == 0 || &metric == std::end(kMetrics) - 1;
    table.optional.push_back(needed ? 0 : 10 - optional);
    ++optional;
    table.on_request.resize(table.header.size());
    table.on_request.back() = std::none_of(
        done.begin(), done.end(),
        [&](const auto* outcome) { return metric.of(*outcome).has_value(); });
  }
  table.header.push_back("fits");
  table.left.push_back(true);
  for (const SweepOutcome* outcome : done) {
    if (num_rows > 0 && table.rows.size() == num_rows) break;
    std::vector<std::string> row = {absl::StrCat(outcome->point())};
    auto settings = Settings(collected, outcome->point());
    for (const std::string& field : collected.sweep.fields) {
      row.push_back(settings[field]);
    }
    if (shows_gpus) row.push_back(absl::StrCat(outcome->num_gpus()));
    for (const Metric& metric : kMetrics) row.push_back(Cell(metric, *outcome));
    row.push_back(outcome->fits_memory() ? "yes" : "no");
    table.rows.push_back(std::move(row));
  }
  std::string text = table.rows.empty() ? "" : PrintTable(table);
  if (table.rows.size() < done.size()) {
    absl::StrAppend(&text, "... ", done.size() - table.rows.size(),
                    " more (--top 0)\n");
  }
  return absl::StrCat(text, WrapText(Reasons(collected)));
}

std::vector<std::string> PivotMetrics() {
  std::vector<std::string> names;
  for (const Metric& metric : kMetrics) names.emplace_back(metric.name);
  return names;
}

absl::StatusOr<std::string> ParsePivotMetric(const std::string& name) {
  if (FindMetric(name) != nullptr) return name;
  return absl::InvalidArgumentError(absl::StrCat(
      "is ", EscapeLine(name), ", expected ",
      absl::StrJoin(PivotMetrics(), ", "), DidYouMean(name, PivotMetrics())));
}

absl::StatusOr<Pivot> PivotOf(const CollectedSweep& collected,
                              absl::string_view option,
                              absl::string_view fields,
                              absl::string_view metric_name) {
  std::vector<std::string> axes;
  std::vector<std::string> known;
  for (const std::string& field : collected.sweep.fields) {
    known.push_back(ShortField(field));
  }
  for (absl::string_view name : absl::StrSplit(fields, ',')) {
    axes.push_back(LongField(absl::StripAsciiWhitespace(name)));
    if (!absl::c_linear_search(collected.sweep.fields, axes.back())) {
      return absl::InvalidArgumentError(absl::StrCat(
          option, " has ", EscapeLine(name),
          ", expected fields of the sweep: ", absl::StrJoin(known, ", ")));
    }
  }
  if (axes.size() != 2 || axes[0] == axes[1]) {
    return absl::InvalidArgumentError(absl::StrCat(
        option, " is ", EscapeLine(fields),
        ", expected two different fields of ", absl::StrJoin(known, ", ")));
  }
  const Metric* metric = FindMetric(metric_name);
  if (metric == nullptr) {
    return ParsePivotMetric(std::string(metric_name)).status();
  }
  std::map<std::pair<std::string, std::string>, double> best;
  for (const auto& [point, outcome] : collected.outcomes) {
    if (outcome.kind() != SWEEP_DONE || !outcome.fits_memory()) continue;
    const Value value = metric->of(outcome);
    if (!value.has_value()) continue;
    auto settings = Settings(collected, point);
    const std::pair<std::string, std::string> cell = {settings[axes[0]],
                                                      settings[axes[1]]};
    const auto [at, added] = best.emplace(cell, *value);
    const bool better =
        metric->more_is_better ? *value > at->second : *value < at->second;
    if (better) at->second = *value;
  }
  Pivot pivot = {metric->title,
                 ShortField(axes[0]),
                 ShortField(axes[1]),
                 ValuesOf(collected, axes[0]),
                 ValuesOf(collected, axes[1]),
                 {},
                 metric->text,
                 metric->more_is_better};
  for (const std::string& row : pivot.rows) {
    auto& cells = pivot.cells.emplace_back();
    for (const std::string& column : pivot.columns) {
      const auto at = best.find({row, column});
      cells.push_back(at == best.end() ? std::nullopt
                                       : std::optional(at->second));
    }
  }
  return pivot;
}

absl::StatusOr<std::string> PivotTable(const CollectedSweep& collected,
                                       absl::string_view fields,
                                       absl::string_view metric_name) {
  ASSIGN_OR_RETURN(const Pivot pivot,
                   PivotOf(collected, "--pivot", fields, metric_name));
  TextTable table;
  table.header = {absl::StrCat(pivot.row_field, " \\ ", pivot.column_field)};
  table.header.insert(table.header.end(), pivot.columns.begin(),
                      pivot.columns.end());
  for (size_t i = 0; i < pivot.rows.size(); ++i) {
    std::vector<std::string> row = {pivot.rows[i]};
    for (const std::optional<double>& cell : pivot.cells[i]) {
      row.push_back(cell.has_value() ? pivot.text(*cell) : "-");
    }
    table.rows.push_back(std::move(row));
  }
  return absl::StrCat(WrapText(absl::StrCat("best ", pivot.metric,
                                            " of the points that fit\n")),
                      PrintTable(table));
}

}  // namespace weir::plan
