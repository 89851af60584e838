// SPDX-License-Identifier: Apache-2.0
//   gpt on a100x8: tensor 1 x pipeline 4 x data 2 = 8 GPUs, batch 16 = 2 x ...
//
//   schedule  step time  tokens/s/GPU  ...  bubble  peak memory  fits
//   gpipe        1.20 s           853  ...  27.3 %     17.2 GiB    no
//   1f1b         1.25 s           819  ...  27.3 %     9.20 GiB   yes
//   not shown: 90-%-interval, ... (--wide, --columns)
//
//   memory per GPU: 15.8 GiB; gpipe needs 1.40 GiB more
//   fastest that fits: 1f1b, 1.25 s per step (1.00 to 1.50 s)
//   limit: compute of rank 3
#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text.h"
#include "base/text_table.h"
#include "base/units.h"
#include "results/flops.h"
#include "results/memory_limits.h"
#include "results/summary.h"
#include "results/views/cells.h"
#include "results/views/features.h"
#include "results/views/views.h"
#include "schedules/registry.h"

namespace weir::results {
namespace {

template <typename Get>
bool AllEqual(std::span<const Result> results, Get get) {
  return std::all_of(results.begin(), results.end(), [&](const Result& result) {
    return get(result) == get(results.front());
  });
}

// Whether all rows share name, shape and features. Shared values are above the
// table, others in columns.
struct Common {
  bool name;
  bool shape;
  bool features;
};

std::string Title(const Result& first, const Common& common) {
  const std::string name = common.name ? first.name() : "";
  if (common.shape) return ShapeTitle(name, first);
  return name.empty() ? "" : absl::StrCat(Ascii(name), "\n");
}

struct Column {
  std::string header;
  std::function<std::string(const Result&)> cell;
  bool left = false;
  int optional = 0;         // see TextTable
  bool on_request = false;  // see TextTable
};

std::string NameCell(const Result& result) { return Ascii(result.name()); }
std::string ScheduleCell(const Result& result) {
  return Ascii(RowName(result));
}
std::string FeaturesCell(const Result& result) {
  const std::string text = CommonFeatures({&result, 1});
  return text.empty() ? "-" : text;
}
bool ChangesTraining(const Result& result) {
  return result.staleness_updates() > 0;
}
std::string MarkedScheduleCell(const Result& result) {
  return absl::StrCat(ScheduleCell(result),
                      ChangesTraining(result) ? " (*)" : "");
}
std::string VersionsCell(const Result& result) {
  return absl::StrCat(result.weight_versions());
}
std::string StalenessCell(const Result& result) {
  return absl::StrCat(result.staleness_updates());
}
std::string FitsCell(const Result& result) {
  if (!result.has_memory_capacity_bytes()) return "-";
  switch (VerdictOf(result)) {
    case FitVerdict::kFits:
      return "yes";
    case FitVerdict::kMayNotFit:
      return "tight";
    case FitVerdict::kMayFit:
      return "unlikely";
    case FitVerdict::kDoesNotFit:
      return "no";
  }
  return "";
}
std::string MemoryIntervalCell(const Result& result) {
  if (!result.has_peak_memory_bytes_high()) return "-";
  return IntervalText(FormatBytes(result.peak_memory_bytes_low()),
                      FormatBytes(result.peak_memory_bytes_high()));
}

bool HasPart(std::span<const Result> results, const StepPart& part) {
  return part.always_shown ||
         std::any_of(results.begin(), results.end(), [&](const Result& r) {
           return (r.breakdown().*part.seconds)() > 0;
         });
}

// Columns that say nothing about these results are printed on request.
std::vector<Column> Columns(std::span<const Result> results,
                            const Common& common) {
  const auto any = [&](auto condition) {
    return std::any_of(results.begin(), results.end(), condition);
  };
  const bool flops =
      any([](const Result& r) { return r.has_flops_per_batch(); });
  const bool utilization = any([](const Result& r) {
    return r.has_flops_per_batch() || r.has_model_flops_utilization();
  });
  const bool samples =
      any([](const Result& r) { return r.has_samples_per_second(); });
  const bool tokens =
      any([](const Result& r) { return r.has_tokens_per_second(); });
  const bool interval =
      any([](const Result& r) { return r.has_batch_seconds_low(); });
  const bool breakdown = any([](const Result& r) { return r.has_breakdown(); });
  const bool versions =
      any([](const Result& r) { return r.weight_versions() > 1; });
  const bool staleness =
      any([](const Result& r) { return r.staleness_updates() > 0; });
  const bool misfit =
      any([](const Result& r) { return VerdictOf(r) != FitVerdict::kFits; });
  const bool memory_interval =
      any([](const Result& r) { return r.has_peak_memory_bytes_high(); });
  std::vector<Column> columns = {
      {"schedule", MarkedScheduleCell, true},
      {"name", NameCell, true, 0, common.name},
      {"shape", ShapeCell, true, 0, common.shape},
      {"features", FeaturesCell, true, 0, common.features},
      {"step time", TimeCell},
      {"90 % interval", IntervalCell, false, 7, !interval},
      {"samples/s", SamplesCell, false, 20, !samples},
      {"tokens/s", TokensCell, false, 19, !tokens},
      {"tokens/s/GPU", TokensPerGpuCell, false, 5, !tokens},
      {"TFLOP/s/GPU", TeraflopsCell, false, 3, !flops},
      {"MFU", UtilizationCell, false, 6, !utilization},
      {"idle", IdleCell, false, 1, breakdown},
  };
  int order = 10;
  for (const StepPart& part : StepParts()) {
    const bool bubble = absl::string_view(part.name) == "bubble";
    columns.push_back(
        {part.name,
         [&part](const Result& result) { return StepPartCell(result, part); },
         false, bubble ? 1 : order++, !breakdown || !HasPart(results, part)});
  }
  columns.push_back({"versions", VersionsCell, false, 4, !versions});
  columns.push_back({"staleness", StalenessCell, false, 8, !staleness});
  columns.push_back({"peak memory", PeakCell});
  columns.push_back(
      {"memory 90 % interval", MemoryIntervalCell, false, 9, !memory_interval});
  columns.push_back({"fits", FitsCell, false, 2, !misfit});
  return columns;
}

TextTable Rows(std::span<const Result> results, const Common& common) {
  TextTable table;
  table.rows.resize(results.size());
  for (const Column& column : Columns(results, common)) {
    table.header.push_back(column.header);
    table.left.push_back(column.left);
    table.optional.push_back(column.optional);
    table.on_request.push_back(column.on_request);
    for (size_t i = 0; i < results.size(); ++i) {
      table.rows[i].push_back(column.cell(results[i]));
    }
  }
  return table;
}

// Returns the schedule of a row and the values that rows do not share.
std::string RowText(const Result& result, const Common& common) {
  std::string text = ScheduleCell(result);
  if (!common.name) absl::StrAppend(&text, ", ", NameCell(result));
  if (!common.shape) absl::StrAppend(&text, ", ", ShapeCell(result));
  if (!common.features) absl::StrAppend(&text, ", ", FeaturesCell(result));
  return text;
}

std::string SpeedText(const Result& result, const Common& common) {
  // Step times are not comparable if batch sizes differ.
  if (!common.shape && result.has_samples_per_second()) {
    return absl::StrCat(SamplesCell(result), " samples/s");
  }
  return absl::StrCat(TimeIntervalCell(result), " per step");
}

// Returns a line with the memory of the GPUs and the results that exceed it.
std::string MemoryLine(std::span<const Result> results, const Common& common) {
  std::vector<std::string> parts;
  const auto capacity = [](const Result& r) {
    return r.memory_capacity_bytes();
  };
  if (AllEqual(results, capacity) &&
      results.front().has_memory_capacity_bytes()) {
    parts.push_back(absl::StrCat("memory per GPU: ",
                                 FormatBytes(capacity(results.front()))));
  }
  for (const Result& result : results) {
    if (FitsMemory(result)) continue;
    parts.push_back(
        absl::StrCat(RowText(result, common), ": ", MemoryExcessText(result)));
  }
  return parts.empty() ? "" : absl::StrCat(absl::StrJoin(parts, "; "), "\n");
}

// Returns a line that names the formula behind TFLOP/s and MFU.
std::string FormulaLine(std::span<const Result> results) {
  const Result& first = results.front();
  if (!first.has_flops_per_batch()) return "";
  return absl::StrCat("TFLOP/s/GPU and MFU: formula ", NameOf(FormulaOf(first)),
                      " (docs/flops.md)\n");
}

// Returns a line that names inference results if there are training results.
std::string NotCompared(std::span<const Result> results, const Common& common) {
  if (Comparable(results).size() == results.size()) return "";
  std::vector<std::string> rows;
  for (const Result& result : results) {
    if (result.forward_only()) rows.push_back(RowText(result, common));
  }
  return absl::StrCat(
      "not compared, inference only: ", absl::StrJoin(rows, "; "), "\n");
}

// Says why a schedule that separates weight gradients from input gradients has
// more exposed tensor-parallel communication than one that does not.
std::string SplitNote(std::span<const Result> results, const Common& common) {
  const Result* whole = nullptr;
  const auto splits = [](const Result& result) {
    const auto kind = schedules::FindScheduleKind(result.schedule());
    return kind.ok() && (*kind)->splits_backward;
  };
  const auto exposed = [](const Result& result) {
    return result.breakdown().tensor_communication_seconds();
  };
  for (const Result& result : results) {
    if (!result.has_breakdown() || splits(result)) continue;
    if (whole == nullptr || exposed(result) < exposed(*whole)) whole = &result;
  }
  if (whole == nullptr || !common.shape) return "";
  std::vector<std::string> names;
  for (const Result& result : results) {
    const double more = exposed(result) - exposed(*whole);
    if (result.has_breakdown() && splits(result) &&
        more > 0.01 * result.batch_seconds()) {
      names.push_back(absl::StrCat(RowText(result, common), " (",
                                   FormatSeconds(more), " more than ",
                                   RowText(*whole, common), ")"));
    }
  }
  if (names.empty()) return "";
  return absl::StrCat(
      "more tp comm: ", absl::StrJoin(names, ", "),
      ": where I and W are separate passes, tensor-parallel collectives do not "
      "overlap weight gradients (docs/runtimes.md)\n");
}

// Returns a line about schedules that do not train like one GPU.
std::string TrainingNote(std::span<const Result> results) {
  if (std::none_of(results.begin(), results.end(), ChangesTraining)) return "";
  return "(*) training differs from training on one GPU (stale weights)\n";
}

// Returns a line that explains verdicts between yes and no.
std::string FitsNote(std::span<const Result> results) {
  const auto any = [&](FitVerdict verdict) {
    return std::any_of(
        results.begin(), results.end(),
        [&](const Result& result) { return VerdictOf(result) == verdict; });
  };
  std::vector<std::string> notes;
  if (any(FitVerdict::kMayNotFit)) {
    notes.push_back("tight: fits, but the 90 % interval of the peak does not");
  }
  if (any(FitVerdict::kMayFit)) {
    notes.push_back(
        "unlikely: does not fit, but the low end of the 90 % interval does");
  }
  return notes.empty() ? "" : absl::StrCat(absl::StrJoin(notes, "; "), "\n");
}

std::string Conclusion(std::span<const Result> results, const Common& common) {
  const Fastest fastest = FindFastest(results);
  const Result& first = results[*fastest.of_all];
  if (!fastest.that_fits.has_value()) {
    const std::vector<int> comparable = Comparable(results);
    const Result& smallest = results[*std::min_element(
        comparable.begin(), comparable.end(), [&](int a, int b) {
          return MissingBytes(results[a]) < MissingBytes(results[b]);
        })];
    return absl::StrCat(
        "none fits in memory; closest: ", RowText(smallest, common), ", ",
        MemoryExcessText(smallest), "\n");
  }
  const Result& best = results[*fastest.that_fits];
  const bool limited = std::any_of(
      results.begin(), results.end(),
      [](const Result& r) { return r.has_memory_capacity_bytes(); });
  std::string text = absl::StrCat(
      limited ? "fastest that fits: " : "fastest: ", RowText(best, common),
      ", ", SpeedText(best, common), "\n");
  if (!best.limit().empty()) {
    absl::StrAppend(&text, "limit: ", Ascii(best.limit()), "\n");
  }
  const std::string evidence = EvidenceCell(best);
  if (!evidence.empty()) {
    absl::StrAppend(&text, "basis of the estimate: ", evidence,
                    " (docs/uncertainty.md)\n");
  }
  if (fastest.of_all != fastest.that_fits) {
    absl::StrAppend(&text, "the fastest does not fit: ", RowText(first, common),
                    ", ", SpeedText(first, common), ", ",
                    MemoryExcessText(first), "\n");
  }
  return text;
}

}  // namespace

std::string CompareTable(std::span<const Result> results) {
  if (results.empty()) return "no results\n";
  const Common common = {
      AllEqual(results, [](const Result& r) { return r.name(); }),
      AllEqual(results, ShapeText), AllEqual(results, FeaturesCell)};
  std::string notes = absl::StrCat(
      MemoryLine(results, common), Conclusion(results, common),
      NotCompared(results, common), SplitNote(results, common),
      FitsNote(results), TrainingNote(results), FormulaLine(results));
  if (std::any_of(results.begin(), results.end(), IsApproximate)) {
    absl::StrAppend(&notes,
                    "~: approximate, as no steady state was reached in the "
                    "simulated batches\n");
  }
  const std::string head =
      absl::StrCat(Title(results.front(), common), DefaultsLine(results),
                   FeaturesLine(CommonFeatures(results)));
  return absl::StrCat(head, head.empty() ? "" : "\n",
                      PrintTable(Rows(results, common)), "\n", WrapText(notes));
}

std::vector<std::string> CompareColumns() {
  const Result none;
  std::vector<std::string> names;
  for (const Column& column : Columns({&none, 1}, Common{true, true, true})) {
    names.push_back(ColumnKey(column.header));
  }
  return names;
}

}  // namespace weir::results
