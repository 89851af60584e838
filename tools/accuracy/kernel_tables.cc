// SPDX-License-Identifier: Apache-2.0
#include "tools/accuracy/kernel_tables.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/csv.h"
#include "base/files.h"
#include "base/status_macros.h"

namespace weir {
namespace {

constexpr double kMost = 1e12;
constexpr double kLeastTokens = 256;
constexpr double kLeastRecurrenceTokens = 2048;
constexpr double kLeastMultiprocessors = 12;  // 20 by default

// A table with numbers by name of column.
class Table {
 public:
  static absl::StatusOr<Table> Load(const std::string& path,
                                    const std::vector<std::string>& numbers) {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
    ASSIGN_OR_RETURN(CsvTable csv, ReadCsv(path, text));
    Table table(std::move(csv));
    for (const std::string& name : numbers) {
      ASSIGN_OR_RETURN(const CsvColumn column, table.csv_.Column(name));
      ASSIGN_OR_RETURN(table.numbers_[name], column.Numbers(0, kMost));
    }
    return table;
  }

  int num_rows() const { return csv_.num_rows(); }
  int Line(int row) const { return csv_.rows()[row].line; }
  double Number(const std::string& name, int row) const {
    return numbers_.at(name)[row];
  }
  // Requires: the column exists.
  bool Is(int row, absl::string_view name, absl::string_view value) const {
    return csv_.Column(name)->Text(row) == value;
  }
  std::string Text(absl::string_view name, int row) const {
    return csv_.Column(name)->Text(row);
  }

 private:
  explicit Table(CsvTable csv) : csv_(std::move(csv)) {}

  CsvTable csv_;
  std::map<std::string, std::vector<double>> numbers_;
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle]
                                : (values[middle - 1] + values[middle]) / 2;
}

std::optional<models::CollectiveKind> KindOf(absl::string_view name) {
  if (name == "all_reduce") return models::CollectiveKind::kAllReduce;
  if (name == "all_gather") return models::CollectiveKind::kAllGather;
  if (name == "reduce_scatter") return models::CollectiveKind::kReduceScatter;
  if (name == "alltoall") return models::CollectiveKind::kAllToAll;
  return std::nullopt;
}

}  // namespace

absl::StatusOr<std::vector<AttentionRow>> ReadAttentionRows(
    const std::string& tables, absl::string_view system,
    absl::string_view kernel) {
  ASSIGN_OR_RETURN(
      const Table table,
      Table::Load(absl::StrCat(tables, "/attention_", system, ".csv"),
                  {"batch", "seq_len", "heads", "kv_heads", "head_size",
                   "window", "latency_ms"}));
  std::vector<AttentionRow> rows;
  for (int i = 0; i < table.num_rows(); ++i) {
    const double size = table.Number("head_size", i);
    if (!table.Is(i, "kernel", kernel) ||
        !table.Is(i, "attn_dtype", "bfloat16") ||
        table.Number("window", i) > 0 || table.Number("seq_len", i) < 512 ||
        (size != 64 && size != 128 && size != 256)) {
      continue;
    }
    rows.push_back({table.Line(i), table.Number("batch", i),
                    table.Number("seq_len", i), table.Number("heads", i),
                    table.Number("kv_heads", i), size, size,
                    table.Number("latency_ms", i) * 1e-3});
  }
  return rows;
}

absl::StatusOr<std::vector<AttentionRow>> ReadLatentRows(
    const std::string& tables, absl::string_view system) {
  ASSIGN_OR_RETURN(const Table table,
                   Table::Load(absl::StrCat(tables, "/mla.csv"),
                               {"batch", "seq_len", "heads", "latency_ms"}));
  std::map<std::tuple<double, double, double>, std::vector<double>> seconds;
  std::map<std::tuple<double, double, double>, int> lines;
  for (int i = 0; i < table.num_rows(); ++i) {
    if (!table.Is(i, "system", system) ||
        !table.Is(i, "kv_dtype", "bfloat16") ||
        table.Number("seq_len", i) < 512) {
      continue;
    }
    const std::tuple key(table.Number("batch", i), table.Number("seq_len", i),
                         table.Number("heads", i));
    seconds[key].push_back(table.Number("latency_ms", i) * 1e-3);
    lines.emplace(key, table.Line(i));
  }
  std::vector<AttentionRow> rows;
  for (const auto& [key, values] : seconds) {
    const auto [batch, length, heads] = key;
    rows.push_back(
        {lines.at(key), batch, length, heads, heads, 192, 128, Median(values)});
  }
  return rows;
}

absl::StatusOr<std::vector<ExpertRow>> ReadExpertRows(
    const std::vector<std::string>& folders, absl::string_view system) {
  const auto in = [&](const std::string& folder) {
    return absl::StrCat(folder, "/moe_", system, ".csv");
  };
  const auto folder = std::find_if(
      folders.begin(), folders.end(),
      [&](const std::string& one) { return std::filesystem::exists(in(one)); });
  if (folder == folders.end()) return std::vector<ExpertRow>();
  const std::string path = in(*folder);
  ASSIGN_OR_RETURN(const Table table,
                   Table::Load(path, {"tokens", "hidden", "inter", "topk",
                                      "experts", "tp", "ep", "latency_ms"}));
  std::vector<ExpertRow> rows;
  for (int i = 0; i < table.num_rows(); ++i) {
    ExpertRow row = {table.Line(i),
                     table.Number("tokens", i),
                     table.Number("hidden", i),
                     table.Number("inter", i),
                     table.Number("topk", i),
                     table.Number("experts", i),
                     table.Number("tp", i),
                     table.Number("ep", i),
                     !absl::StrContains(table.Text("kernel", i), "nongated"),
                     table.Number("latency_ms", i) * 1e-3};
    if (!table.Is(i, "dtype", "bfloat16") ||
        !table.Is(i, "distribution", "balanced") ||
        row.tokens * row.topk / row.experts < kLeastTokens) {
      continue;
    }
    rows.push_back(row);
  }
  return rows;
}

absl::StatusOr<std::vector<RecurrenceRow>> ReadRecurrenceRows(
    const std::string& path, absl::string_view system,
    absl::string_view kernel) {
  if (!std::filesystem::exists(path)) return std::vector<RecurrenceRow>();
  ASSIGN_OR_RETURN(const Table table,
                   Table::Load(path, {"batch", "seq_len", "v_heads",
                                      "v_head_size", "latency_ms"}));
  // Columns that other recurrences do not have are empty.
  const auto number = [&](absl::string_view name, int row) {
    double value = 0;
    return absl::SimpleAtod(table.Text(name, row), &value) ? value : 0;
  };
  std::vector<RecurrenceRow> rows;
  for (int i = 0; i < table.num_rows(); ++i) {
    if (!table.Is(i, "system", system) || !table.Is(i, "kernel", kernel)) {
      continue;
    }
    const bool mamba = table.Is(i, "op", "mamba2");
    const RecurrenceRow row = {table.Line(i),
                               table.Number("batch", i),
                               table.Number("seq_len", i),
                               number(mamba ? "groups" : "k_heads", i),
                               number(mamba ? "d_state" : "k_head_size", i),
                               table.Number("v_heads", i),
                               table.Number("v_head_size", i),
                               number("chunk", i),
                               mamba,
                               table.Number("latency_ms", i) * 1e-3};
    if (row.batch * row.sequence_length < kLeastRecurrenceTokens) continue;
    rows.push_back(row);
  }
  return rows;
}

absl::StatusOr<std::vector<calibrate::CollectiveSample>> ReadNcclRows(
    const std::string& tables, absl::string_view system,
    absl::string_view version, const calibrate::CollectiveGroup& node) {
  ASSIGN_OR_RETURN(const Table table,
                   Table::Load(absl::StrCat(tables, "/nccl.csv"),
                               {"gpus", "message_bytes", "latency_ms"}));
  std::map<std::tuple<models::CollectiveKind, double, double>,
           std::vector<double>>
      seconds;
  for (int i = 0; i < table.num_rows(); ++i) {
    if (!table.Is(i, "system", system) ||
        !table.Is(i, "nccl_version", version) ||
        !table.Is(i, "dtype", "half") ||
        table.Number("message_bytes", i) < 1024) {
      continue;
    }
    const auto kind = KindOf(table.Text("op", i));
    if (!kind.has_value()) continue;
    seconds[{*kind, table.Number("gpus", i), table.Number("message_bytes", i)}]
        .push_back(table.Number("latency_ms", i) * 1e-3);
  }
  std::vector<calibrate::CollectiveSample> samples;
  for (const auto& [key, values] : seconds) {
    const auto& [kind, gpus, bytes] = key;
    calibrate::CollectiveSample sample{kind, bytes, node, Median(values)};
    sample.group.num_ranks = static_cast<int>(gpus);
    sample.group.ranks_per_node = static_cast<int>(gpus);
    samples.push_back(sample);
  }
  return samples;
}

absl::StatusOr<std::vector<ExchangeRow>> ReadDeepEpRows(
    const std::string& tables, absl::string_view system, bool dispatch) {
  const std::string kind = dispatch ? "dispatch" : "combine";
  const std::string transmit = kind + "_transmit_us";
  const std::string notify = kind + "_notify_us", count = kind + "_sms";
  ASSIGN_OR_RETURN(const Table table,
                   Table::Load(absl::StrCat(tables, "/deepep_normal.csv"),
                               {"nodes", "gpus", "hidden", "tokens_per_gpu",
                                "topk", "experts", transmit, notify, count}));
  std::map<std::tuple<double, double, double, double, double, double>,
           ExchangeRow>
      fastest;
  for (int i = 0; i < table.num_rows(); ++i) {
    // Dispatch carries fp8 with a scale of 4 bytes for each 128 elements.
    const ExchangeRow row = {
        table.Line(i),
        table.Number("gpus", i),
        table.Number("tokens_per_gpu", i),
        table.Number("hidden", i),
        table.Number("topk", i),
        table.Number("experts", i),
        dispatch ? 1 + 4 / 128.0 : 2,
        (table.Number(transmit, i) + table.Number(notify, i)) * 1e-6,
        table.Number("nodes", i),
        table.Number(count, i)};
    if (!table.Is(i, "system", system) || row.tokens < kLeastTokens ||
        row.multiprocessors < kLeastMultiprocessors || !(row.seconds > 0)) {
      continue;
    }
    const auto [at, added] =
        fastest.emplace(std::tuple(row.gpus, row.tokens, row.hidden, row.topk,
                                   row.experts, row.multiprocessors),
                        row);
    if (!added && row.seconds < at->second.seconds) at->second = row;
  }
  std::vector<ExchangeRow> rows;
  for (const auto& [key, row] : fastest) rows.push_back(row);
  return rows;
}

absl::StatusOr<std::vector<ExchangeRow>> ReadRackRows(const std::string& tables,
                                                      bool dispatch) {
  ASSIGN_OR_RETURN(
      const Table table,
      Table::Load(
          absl::StrCat(tables, "/nvlink_alltoall_gb200.csv"),
          {"ep", "tokens_per_gpu", "hidden", "topk", "experts", "latency_ms"}));
  std::vector<ExchangeRow> rows;
  for (int i = 0; i < table.num_rows(); ++i) {
    if (!table.Is(i, "phase", dispatch ? "dispatch" : "combine") ||
        !table.Is(i, "kernel", "NVLinkTwoSided") ||
        !table.Is(i, "dtype", "bfloat16") ||
        table.Number("tokens_per_gpu", i) < kLeastTokens) {
      continue;
    }
    rows.push_back({table.Line(i), table.Number("ep", i),
                    table.Number("tokens_per_gpu", i),
                    table.Number("hidden", i), table.Number("topk", i),
                    table.Number("experts", i), 2,
                    table.Number("latency_ms", i) * 1e-3});
  }
  return rows;
}

}  // namespace weir
