// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/collective_table.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/csv.h"
#include "base/status_macros.h"

namespace weir::calibrate {
namespace {

constexpr double kMostBytes = 1e15, kMostRanks = 1e6;

std::optional<CollectiveKind> KindOf(absl::string_view name) {
  if (name == "all_reduce") return CollectiveKind::kAllReduce;
  if (name == "all_gather") return CollectiveKind::kAllGather;
  if (name == "reduce_scatter") return CollectiveKind::kReduceScatter;
  if (name == "alltoall") return CollectiveKind::kAllToAll;
  return std::nullopt;
}

std::optional<double> BytesOf(absl::string_view type) {
  if (type == "half") return 2;
  if (type == "int8") return 1;
  return std::nullopt;
}

}  // namespace

absl::StatusOr<std::vector<CollectiveSample>> ReadCollectiveTable(
    absl::string_view label, absl::string_view text, absl::string_view type,
    double least_bytes, const CollectiveGroup& node) {
  ASSIGN_OR_RETURN(const CsvTable table, ReadCsv(label, text));
  ASSIGN_OR_RETURN(const CsvColumn names, table.Column("op_name"));
  ASSIGN_OR_RETURN(const CsvColumn types, table.Column("nccl_dtype"));
  ASSIGN_OR_RETURN(const CsvColumn ranks, table.Column("num_gpus"));
  ASSIGN_OR_RETURN(const CsvColumn sizes, table.Column("message_size"));
  ASSIGN_OR_RETURN(const CsvColumn latencies, table.Column("latency"));
  std::vector<CollectiveSample> samples;
  for (int row = 0; row < table.num_rows(); ++row) {
    const auto kind = KindOf(names.Text(row));
    if (!kind.has_value()) {
      return names.Error(
          row, "expected all_reduce, all_gather, reduce_scatter or alltoall");
    }
    const auto element_bytes = BytesOf(types.Text(row));
    if (!element_bytes.has_value()) {
      return types.Error(row, "expected half or int8");
    }
    ASSIGN_OR_RETURN(const double num_ranks, ranks.Number(row, 2, kMostRanks));
    ASSIGN_OR_RETURN(const double elements, sizes.Number(row, 1, kMostBytes));
    ASSIGN_OR_RETURN(const double ms, latencies.Number(row, 1e-6, 1e9));
    CollectiveSample sample{*kind, elements * *element_bytes, node, ms * 1e-3};
    sample.group.num_ranks = sample.group.ranks_per_node =
        static_cast<int>(num_ranks);
    if (types.Text(row) == type && sample.bytes >= least_bytes) {
      samples.push_back(sample);
    }
  }
  return samples;
}

absl::StatusOr<std::vector<CollectiveSample>> ReadAllReduceTable(
    absl::string_view label, absl::string_view text,
    const CollectiveGroup& group) {
  // The header uses the same names for the in-place and out-of-place columns.
  const size_t header = text.find('\n');
  if (header == absl::string_view::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat(label, ": has no line after its header, expected rows"));
  }
  const std::string renamed =
      absl::StrCat("bytes,count,type,ns,busbw,in_place_ns,in_place_busbw",
                   text.substr(header));
  ASSIGN_OR_RETURN(const CsvTable table, ReadCsv(label, renamed));
  ASSIGN_OR_RETURN(const CsvColumn byte_column, table.Column("bytes"));
  ASSIGN_OR_RETURN(const CsvColumn ns_column, table.Column("ns"));
  ASSIGN_OR_RETURN(const std::vector<double> bytes,
                   byte_column.Numbers(1, kMostBytes));
  ASSIGN_OR_RETURN(const std::vector<double> ns, ns_column.Numbers(1, 1e18));
  std::vector<CollectiveSample> samples;
  for (size_t i = 0; i < bytes.size(); ++i) {
    samples.push_back(
        {CollectiveKind::kAllReduce, bytes[i], group, ns[i] * 1e-9});
  }
  return samples;
}

}  // namespace weir::calibrate
