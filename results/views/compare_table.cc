// SPDX-License-Identifier: Apache-2.0
//   gpt on a100x8: tensor 1 x pipeline 4 x data 2 = 8 GPUs, batch 16 = 2 x ...
//
//   schedule  time per batch  samples/s  ...  peak memory of the worst rank
//   gpipe             1.20 s       13.3  ...  17.2 GiB of 15.8 GiB, 1.40 ...
//   1f1b              1.25 s       12.8  ...  9.20 GiB of 15.8 GiB
//
//   fastest that fits: 1f1b, 1.25 s per batch; limit: compute of rank 3
//   the fastest does not fit: gpipe, 1.20 s per batch, 1.40 GiB over the ...
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text.h"
#include "results/summary.h"
#include "results/views/cells.h"
#include "results/views/views.h"

namespace weir::results {
namespace {

template <typename Get>
bool AllEqual(std::span<const Result> results, Get get) {
  return std::all_of(results.begin(), results.end(), [&](const Result& result) {
    return get(result) == get(results.front());
  });
}

// Whether all rows share name and shape. Shared values are in the first line,
// others in columns.
struct Common {
  bool name;
  bool shape;
};

std::string Title(const Result& first, const Common& common) {
  std::string title = common.name ? Ascii(first.name()) : "";
  if (common.shape) {
    absl::StrAppend(&title, title.empty() ? "" : ": ", ShapeText(first));
  }
  return title.empty() ? "" : absl::StrCat(title, "\n\n");
}

struct Column {
  bool shown;
  bool left;
  const char* header;
  std::string (*cell)(const Result&);
};

std::string NameCell(const Result& result) { return Ascii(result.name()); }
std::string ScheduleCell(const Result& result) {
  return Ascii(RowName(result));
}
std::string VersionsCell(const Result& result) {
  return absl::StrCat(result.weight_versions());
}
std::string StalenessCell(const Result& result) {
  return absl::StrCat(result.staleness_updates());
}

TextTable Rows(std::span<const Result> results, const Common& common) {
  // All results of a comparison have the same formula.
  const Result first = results.empty() ? Result() : results.front();
  const std::string teraflops = TeraflopsHeader(first);
  const std::string utilization = UtilizationHeader(first);
  const Column columns[] = {
      {true, true, "schedule", ScheduleCell},
      {!common.name, true, "name", NameCell},
      {!common.shape, true, "shape", ShapeCell},
      {true, false, "time per batch", TimeIntervalCell},
      {true, false, "samples/s", SamplesCell},
      {true, false, "tokens/s", TokensCell},
      {first.has_flops_per_batch(), false, teraflops.c_str(), TeraflopsCell},
      {true, false, utilization.c_str(), UtilizationCell},
      {true, false, "bubble", BubbleCell},
      {true, false, "exposed comm", ExposedCell},
      {true, false, "versions", VersionsCell},
      {true, false, "staleness", StalenessCell},
      {true, true, "highest peak memory", MemoryCell},
  };
  TextTable table;
  table.rows.resize(results.size());
  for (const Column& column : columns) {
    if (!column.shown) continue;
    table.header.push_back(column.header);
    table.left.push_back(column.left);
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
  return text;
}

std::string SpeedText(const Result& result, const Common& common) {
  // Times per batch are not comparable if batch sizes differ.
  if (!common.shape && result.has_samples_per_second()) {
    return absl::StrCat(SamplesCell(result), " samples/s");
  }
  return absl::StrCat(TimeCell(result), " per batch");
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
      ", ", SpeedText(best, common));
  if (!best.limit().empty()) {
    absl::StrAppend(&text, "; limit: ", Ascii(best.limit()));
  }
  absl::StrAppend(&text, "\n");
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
      AllEqual(results, ShapeText)};
  std::string text = absl::StrCat(
      Title(results.front(), common), PrintTable(Rows(results, common)), "\n",
      Conclusion(results, common), NotCompared(results, common));
  if (std::any_of(results.begin(), results.end(), IsApproximate)) {
    absl::StrAppend(&text,
                    "~: approximate, as no steady state was reached in the "
                    "simulated batches\n");
  }
  return text;
}

}  // namespace weir::results
