// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/text.h"
#include "base/text_table.h"
#include "base/units.h"
#include "results/compare/execution_comparison.h"
#include "results/summary.h"
#include "results/views/cells.h"
#include "schedules/semantics.h"

namespace weir::results {
namespace {

constexpr size_t kNumWorstRanks = 3;  // ranks

std::string FineSigned(double error) {
  return absl::StrFormat("%+.2f %%", 100 * error);
}

std::string FinePercent(double error) {
  return absl::StrFormat("%.2f %%", 100 * error);
}

// Returns "-" for no time.
std::string SecondsCell(double seconds) {
  return seconds == 0 ? "-" : FormatSeconds(seconds);
}

std::string SummaryBlock(const ExecutionComparison& c) {
  TextTable table;
  table.header = {"", "predicted", "measured", "error"};
  const auto add = [&](const char* name, const ComparedSeconds& seconds) {
    table.rows.push_back({name, FormatSeconds(seconds.predicted),
                          FormatSeconds(seconds.measured),
                          FineSigned(seconds.error())});
  };
  add("makespan", c.makespan);
  // With flush the batch time is the makespan.
  if (c.batch.measured > 0 && c.batch.measured != c.makespan.measured) {
    add("batch", c.batch);
  }
  add("span of passes", c.span);
  table.rows.push_back(
      {"idle", FormatPercent(c.idle_ratio.predicted),
       FormatPercent(c.idle_ratio.measured),
       absl::StrFormat("%+.2f points", 100 * (c.idle_ratio.predicted -
                                              c.idle_ratio.measured))});
  return PrintTable(table);
}

std::string ErrorsBlock(const ExecutionComparison& c) {
  TextTable table;
  table.header = {"op",    "count", "durations", "bias",  "median", "90 %",
                  "worst", "of",    "starts",    "worst", "of",     "ends"};
  table.left = {true,  false, false, false, false, false,
                false, true,  false, false, true,  false};
  table.optional = {0, 0, 0, 0, 5, 4, 0, 1, 2, 3, 3, 2};
  for (const ActionErrors& errors : c.errors) {
    const ErrorStatistics& d = errors.durations;
    const bool timed = d.num_rows > 0;
    const auto cell = [&](const std::string& text) {
      return timed ? text : "-";
    };
    table.rows.push_back(
        {errors.op, absl::StrCat(errors.num_actions),
         cell(FinePercent(d.mean_absolute)), cell(FineSigned(d.bias)),
         cell(FinePercent(d.median_absolute)),
         cell(FinePercent(d.percentile_90)), cell(FineSigned(d.worst)),
         d.worst == 0 ? "" : errors.worst_duration,
         FinePercent(errors.starts.mean_absolute),
         FineSigned(errors.starts.worst),
         errors.starts.worst == 0 ? "" : errors.worst_start,
         FinePercent(errors.ends.mean_absolute)});
  }
  return absl::StrCat(
      WrapText("\nmean |error|: durations relative to the measured ones, "
               "starts and ends relative to the makespan\n"),
      PrintTable(table));
}

// Rows of busy, start-up, idle causes between actions, drain and all idle time.
class IdleTable {
 public:
  explicit IdleTable(const ExecutionComparison& c) : c_(c) {
    const RankIdle sums[] = {SumOf(c.predicted_idle), SumOf(c.measured_idle)};
    table_.header = {"rank", "", "busy", "start-up"};
    for (int i = 0; i < kNumIdleCauses; ++i) {
      if (sums[0].between[i] == 0 && sums[1].between[i] == 0) continue;
      causes_.push_back(i);
      table_.header.emplace_back(Name(static_cast<IdleCause>(i)));
    }
    table_.header.insert(table_.header.end(), {"drain", "idle"});
    table_.left = {true, true};
    Add("all", sums[0], sums[1]);
  }

  void AddRank(int rank) {
    Add(absl::StrCat(rank), c_.predicted_idle[rank], c_.measured_idle[rank]);
  }

  std::string Print() const { return PrintTable(table_); }

 private:
  void Add(const std::string& rank, const RankIdle& predicted,
           const RankIdle& measured) {
    AddRow(rank, "predicted", predicted);
    AddRow("", "measured", measured);
  }

  void AddRow(const std::string& rank, const char* side, const RankIdle& idle) {
    std::vector<std::string> row = {rank, side, SecondsCell(idle.busy_seconds),
                                    SecondsCell(idle.startup_seconds())};
    for (const int cause : causes_) {
      row.push_back(SecondsCell(idle.between[cause]));
    }
    row.push_back(SecondsCell(idle.drain_seconds));
    row.push_back(SecondsCell(idle.idle_seconds()));
    table_.rows.push_back(std::move(row));
  }

  const ExecutionComparison& c_;
  std::vector<int> causes_;
  TextTable table_;
};

// Returns the `count` of `num` indices with the largest values, ascending.
template <typename Value>
std::vector<int> Worst(int num, size_t count, const Value& value) {
  std::vector<int> order(num);
  for (int i = 0; i < num; ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return value(a) > value(b); });
  order.resize(std::min(order.size(), count));
  std::sort(order.begin(), order.end());
  return order;
}

size_t NumShown(bool all) {
  return all ? std::numeric_limits<size_t>::max() : kNumWorstRanks;
}

std::string IdleBlock(const ExecutionComparison& c, bool all) {
  IdleTable table(c);
  const int num_ranks = static_cast<int>(c.measured_idle.size());
  const auto worst = Worst(num_ranks, NumShown(all), [&](int rank) {
    return std::abs(c.predicted_idle[rank].idle_seconds() -
                    c.measured_idle[rank].idle_seconds());
  });
  for (const int rank : worst) table.AddRank(rank);
  return absl::StrCat("\nidle by cause",
                      worst.size() < c.measured_idle.size()
                          ? ", ranks with the largest errors"
                          : "",
                      "\n", table.Print());
}

std::string TransfersBlock(const ExecutionComparison& c) {
  if (c.predicted_transfers.num_transfers == 0 &&
      c.measured_transfers.num_transfers == 0) {
    return "";
  }
  TextTable table;
  table.header = {"",
                  "count",
                  "bytes",
                  "queued",
                  "in flight",
                  "idle: not computed",
                  "idle: queued",
                  "idle: in flight"};
  table.optional = {0, 2, 4, 3, 0, 0, 1, 0};
  const auto add = [&](const char* side, const TransferTimes& t) {
    const double count = std::max(t.num_transfers, 1);
    table.rows.push_back({side, absl::StrCat(t.num_transfers),
                          FormatBytes(t.bytes),
                          SecondsCell(t.queued_seconds / count),
                          SecondsCell(t.wire_seconds / count),
                          SecondsCell(t.awaited_pass_seconds / count),
                          SecondsCell(t.awaited_queued_seconds / count),
                          SecondsCell(t.awaited_wire_seconds / count)});
  };
  add("predicted", c.predicted_transfers);
  add("measured", c.measured_transfers);
  return absl::StrCat(
      "\nmean times of a transfer, and idle times of its receiver by cause\n",
      PrintTable(table));
}

// Returns the fraction of the run that has passed, and the action.
std::string MomentCell(const MemoryPeak& peak, double makespan_seconds) {
  return absl::StrCat(makespan_seconds > 0
                          ? FormatPercent(peak.at_seconds / makespan_seconds)
                          : "-",
                      ", ", peak.during);
}

double WorstError(const RankMemory& memory) {
  return std::max(std::abs(memory.error()), std::abs(memory.allocator_error()));
}

std::string ClassesTable(const RankMemory& memory) {
  TextTable table;
  table.header = {absl::StrCat("rank ", memory.rank, " at its peaks"),
                  "predicted", "measured", "difference"};
  for (const ComparedClass& one : memory.classes) {
    const double difference = one.predicted_bytes - one.measured_bytes;
    table.rows.push_back(
        {Ascii(one.name), FormatBytes(one.predicted_bytes),
         FormatBytes(one.measured_bytes),
         absl::StrCat(difference > 0 ? "+" : "", FormatBytes(difference))});
  }
  return PrintTable(table);
}

std::string MemoryBlock(const ExecutionComparison& c, bool all) {
  if (c.memory.empty()) return "";
  const int num_ranks = static_cast<int>(c.memory.size());
  const auto error = [&](int i) { return WorstError(c.memory[i]); };
  const auto worst = Worst(num_ranks, NumShown(all), error);
  const bool allocator =
      std::any_of(c.memory.begin(), c.memory.end(),
                  [](const auto& m) { return m.allocator_bytes > 0; });
  TextTable table;
  table.header = {"rank", "predicted", "measured", "error"};
  if (allocator) {
    table.header.insert(table.header.end(), {"taken", "allocator", "error"});
  }
  table.header.insert(table.header.end(),
                      {"time of predicted peak", "time of measured peak"});
  table.left.assign(table.header.size(), false);
  std::fill(table.left.end() - 2, table.left.end(), true);
  table.optional.assign(table.header.size(), 0);
  std::fill(table.optional.end() - 2, table.optional.end(), 1);
  for (const int i : worst) {
    const RankMemory& m = c.memory[i];
    std::vector<std::string> row = {
        absl::StrCat(m.rank), FormatBytes(m.predicted.bytes),
        FormatBytes(m.measured.bytes), FineSigned(m.error())};
    if (allocator) {
      row.push_back(m.taken_bytes > 0 ? FormatBytes(m.taken_bytes) : "-");
      row.push_back(m.allocator_bytes > 0 ? FormatBytes(m.allocator_bytes)
                                          : "-");
      row.push_back(m.allocator_bytes > 0 ? FineSigned(m.allocator_error())
                                          : "-");
    }
    row.push_back(MomentCell(m.predicted, c.makespan.predicted));
    row.push_back(MomentCell(m.measured, c.makespan.measured));
    table.rows.push_back(std::move(row));
  }
  std::string text = absl::StrCat(
      "\npeak memory",
      worst.size() < c.memory.size() ? ", ranks with the largest errors" : "",
      "\n", PrintTable(table));
  const int first = Worst(num_ranks, 1, error).front();
  for (int i = 0; i < num_ranks; ++i) {
    if (!all && i != first) continue;
    absl::StrAppend(&text, "\n", ClassesTable(c.memory[i]));
  }
  const RankMemory& shown = c.memory[first];
  for (const auto& [side, peak] : {std::pair("prediction", shown.predicted),
                                   std::pair("measurement", shown.measured)}) {
    if (peak.left_out_bytes == 0) continue;
    absl::StrAppend(
        &text,
        WrapText(absl::StrCat(
            "not counted in the ", side, ": ", FormatBytes(peak.left_out_bytes),
            " for the CUDA context, libraries and communicators, which "
            "the other side does not count\n")));
  }
  return text;
}

std::string TrainingBlock(const Replay& replay) {
  std::string text;
  if (!replay.losses().empty()) {
    absl::StrAppendFormat(&text, "\nloss %.6g", replay.losses(0));
    if (replay.losses_size() > 1) {
      absl::StrAppendFormat(&text, " to %.6g in %d steps",
                            *replay.losses().rbegin(), replay.losses_size());
    }
    text += "\n";
  }
  if (!replay.formula().empty()) {
    absl::StrAppend(
        &text, "training result compared with ", Ascii(replay.formula()),
        absl::StrFormat(": weights differ by %.2g (%.2g relative to their "
                        "change), losses by %.2g\n",
                        replay.weights_difference(), replay.change_difference(),
                        replay.losses_difference()),
        "(", schedules::kUpdateSymbols, ")\n");
  }
  return WrapText(text);
}

}  // namespace

std::string ExecutionTable(const ExecutionComparison& comparison, bool all) {
  const Result& predicted = comparison.predicted;
  std::string title =
      absl::StrCat(Ascii(comparison.predicted_label), " compared with ",
                   Ascii(comparison.measured_label));
  if (!comparison.measured.replay().device().empty()) {
    absl::StrAppend(&title, ", ", ExecutedCell(comparison.measured));
  }
  std::string text = ShapeTitle(RowName(predicted), predicted);
  absl::StrAppend(&text, WrapText(title), "\n\n", SummaryBlock(comparison),
                  ErrorsBlock(comparison), IdleBlock(comparison, all),
                  TransfersBlock(comparison), MemoryBlock(comparison, all),
                  TrainingBlock(comparison.measured.replay()));
  if (!comparison.notes.empty()) text += "\n";
  for (const std::string& note : comparison.notes) {
    absl::StrAppend(&text, WrapText(absl::StrCat("note: ", Ascii(note), "\n")));
  }
  return text;
}

}  // namespace weir::results
