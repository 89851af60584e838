// SPDX-License-Identifier: Apache-2.0
//   gpt on a100x8: tensor 1 x pipeline 4 x data 2 = 8 GPUs, batch 16 = 2 x ...
//
//   schedule     1f1b: equal to minibatch SGD
//   step time    1.25 s
//   ...
//   part      mean over GPUs  of the step
//   compute           1.00 s       80.0 %
//   ...
//   rank    busy    idle  peak memory  in flight  versions ...
//   0     1.00 s  250 ms     9.20 GiB          4         1
//   ...
//   memory of rank 0 (replica 0, gpu 0) at its peak, 320 ms into the run
//   weights      2.60 GiB
//   ...
//   limit: compute of rank 3
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/text.h"
#include "base/text_table.h"
#include "base/units.h"
#include "results/summary.h"
#include "results/views/cells.h"
#include "results/views/features.h"
#include "results/views/views.h"

namespace weir::results {
namespace {

constexpr size_t kMaxRankRows = 16;

std::string MadeBy(const ResultProvenance& provenance) {
  std::string text = absl::StrCat("weir ", provenance.weir_version());
  if (!provenance.git_revision().empty()) {
    absl::StrAppend(&text, " (", provenance.git_revision(), ")");
  }
  if (!provenance.simgrid_version().empty()) {
    absl::StrAppend(&text, ", SimGrid ", provenance.simgrid_version());
  }
  return Ascii(text);
}

// Adds rows for a result that was executed, not simulated.
void AddExecution(const Result& result, TextTable* table) {
  const Replay& replay = result.replay();
  table->rows.push_back({"execution", absl::StrCat(Ascii(result.method()), ", ",
                                                   ExecutedCell(result))});
  if (!replay.losses().empty()) {
    table->rows.push_back(
        {"losses",
         absl::StrFormat("%.6g to %.6g, %d steps", replay.losses(0),
                         *replay.losses().rbegin(), replay.losses_size())});
  }
  if (replay.formula().empty()) return;
  table->rows.push_back(
      {"training",
       absl::StrFormat("compared with %s: weights differ by %.2g (%.2g "
                       "relative to their change), losses by %.2g",
                       Ascii(replay.formula()), replay.weights_difference(),
                       replay.change_difference(),
                       replay.losses_difference())});
}

std::string SummaryBlock(const Result& result) {
  TextTable table;
  const std::string semantics =
      result.semantics().empty() ? "" : absl::StrCat(": ", result.semantics());
  table.header = {"schedule", Ascii(absl::StrCat(RowName(result), semantics))};
  table.rows = {
      {"step time", TimeIntervalCell(result)},
      {"samples/s", SamplesCell(result)},
      {"tokens/s", TokensCell(result)},
      {"tokens/s/GPU", TokensPerGpuCell(result)},
      {UtilizationHeader(result), UtilizationCell(result)},
      {"GPUs idle", IdleCell(result)},
      {"versions", absl::StrCat(result.weight_versions())},
      {"staleness",
       absl::StrCat(result.staleness_updates(),
                    result.staleness_updates() == 1 ? " update" : " updates")},
      {"peak memory", MemoryCell(result)},
  };
  if (result.has_flops_per_batch()) {
    table.rows.insert(table.rows.begin() + 4,
                      {TeraflopsHeader(result), TeraflopsCell(result)});
  }
  const std::string evidence = EvidenceCell(result);
  if (!evidence.empty()) {
    table.rows.insert(
        table.rows.begin() + 1,
        {"basis", absl::StrCat(evidence, " (docs/uncertainty.md)")});
  }
  const std::string format = NumberFormatCell(result);
  if (!format.empty()) {
    table.rows.insert(table.rows.begin(), {"number format", format});
  }
  if (result.has_replay()) {
    AddExecution(result, &table);
  } else if (!result.method().empty()) {
    table.rows.push_back({"simulation", Ascii(result.method())});
  }
  if (!result.provenance().weir_version().empty()) {
    table.rows.push_back({"made by", MadeBy(result.provenance())});
  }
  table.left = {true, true};
  return PrintTable(table);
}

std::string BreakdownBlock(const Result& result) {
  if (!result.has_breakdown() || !(result.batch_seconds() > 0)) return "";
  TextTable table;
  table.header = {"part", "mean over GPUs", "of the step"};
  for (const StepPart& part : StepParts()) {
    const double seconds = (result.breakdown().*part.seconds)();
    if (seconds == 0 && !part.always_shown) continue;
    table.rows.push_back(
        {part.name, FormatSeconds(seconds), StepPartCell(result, part)});
  }
  return absl::StrCat("\n", PrintTable(table));
}

// Returns the worst value of each quantity over the GPUs of a pipeline rank.
std::map<uint32_t, RankResult> WorstByRank(const Result& result) {
  std::map<uint32_t, RankResult> worst;
  for (const RankResult& gpu : result.ranks()) {
    RankResult& w = worst[gpu.rank()];
    w.set_busy_seconds(std::max(w.busy_seconds(), gpu.busy_seconds()));
    w.set_idle_seconds(std::max(w.idle_seconds(), gpu.idle_seconds()));
    w.set_peak_memory_bytes(
        std::max(w.peak_memory_bytes(), gpu.peak_memory_bytes()));
    w.set_peak_activation_microbatches(std::max(
        w.peak_activation_microbatches(), gpu.peak_activation_microbatches()));
    w.set_weight_versions(std::max(w.weight_versions(), gpu.weight_versions()));
    w.set_staleness_updates(
        std::max(w.staleness_updates(), gpu.staleness_updates()));
  }
  return worst;
}

std::string RankBlock(const Result& result) {
  const std::map<uint32_t, RankResult> ranks = WorstByRank(result);
  if (ranks.empty()) return "";
  TextTable table;
  table.header = RankColumns();
  table.optional = {0, 0, 0, 0, 1, 2, 3};
  for (const auto& [rank, worst] : ranks) {
    if (table.rows.size() == kMaxRankRows) break;
    table.rows.push_back(
        {absl::StrCat(rank), FormatSeconds(worst.busy_seconds()),
         FormatSeconds(worst.idle_seconds()),
         worst.peak_memory_bytes() > 0 ? FormatBytes(worst.peak_memory_bytes())
                                       : "-",
         FormatCount(worst.peak_activation_microbatches()),
         absl::StrCat(worst.weight_versions()),
         absl::StrCat(worst.staleness_updates())});
  }
  std::string text = absl::StrCat("\n", PrintTable(table));
  if (ranks.size() > table.rows.size()) {
    absl::StrAppend(&text, "... ", ranks.size() - table.rows.size(), " more\n");
  }
  if (ranks.size() < static_cast<size_t>(result.ranks_size())) {
    absl::StrAppend(&text, "each value is the maximum over a rank's ",
                    result.ranks_size() / ranks.size(), " GPUs\n");
  }
  return text;
}

std::string MemoryBlock(const Result& result) {
  const auto worst =
      std::max_element(result.ranks().begin(), result.ranks().end(),
                       [](const RankResult& a, const RankResult& b) {
                         return a.peak_memory_bytes() < b.peak_memory_bytes();
                       });
  if (worst == result.ranks().end() || worst->peak_memory_classes().empty()) {
    return "";
  }
  std::string text = absl::StrCat(
      "\nmemory of rank ", worst->rank(), " (replica ", worst->replica(),
      ", gpu ", worst->gpu(), ") at its peak, ",
      FormatSeconds(worst->peak_memory_at_seconds()), " into the run\n");
  std::vector<std::vector<std::string>> rows;
  for (const MemoryClass& memory : worst->peak_memory_classes()) {
    rows.push_back({Ascii(memory.name()), FormatBytes(memory.bytes())});
  }
  rows.push_back({"total", FormatBytes(worst->peak_memory_bytes())});
  TextTable table;
  table.header = rows.front();
  table.rows.assign(rows.begin() + 1, rows.end());
  return text + PrintTable(table);
}

}  // namespace

std::vector<std::string> RankColumns() {
  return {"rank",      "busy",     "idle",     "peak memory",
          "in flight", "versions", "staleness"};
}

std::string ResultTable(const Result& result) {
  std::string text = absl::StrCat(
      ShapeTitle(result.name(), result), DefaultsLine({&result, 1}),
      FeaturesLine(CommonFeatures({&result, 1})), "\n", SummaryBlock(result),
      BreakdownBlock(result), RankBlock(result), MemoryBlock(result));
  if (IsApproximate(result) || !result.limit().empty()) {
    absl::StrAppend(&text, "\n");
  }
  if (IsApproximate(result)) {
    absl::StrAppend(
        &text,
        WrapText(absl::StrCat(
            "~: approximate, as no steady state was reached in the ",
            result.has_replay() ? "replayed" : "simulated", " batches\n")));
  }
  if (!result.limit().empty()) {
    absl::StrAppend(
        &text, WrapText(absl::StrCat("limit: ", Ascii(result.limit()), "\n")));
  }
  return text;
}

}  // namespace weir::results
