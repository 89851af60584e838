// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/collective_table.h"

#include <optional>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/csv.h"
#include "base/status_macros.h"

namespace weir::calibrate {
namespace {

constexpr double kMostBytes = 1e15, kMostRanks = 1e6;

std::optional<models::CollectiveKind> KindOf(absl::string_view name) {
  if (name == "all_reduce") return models::CollectiveKind::kAllReduce;
  if (name == "all_gather") return models::CollectiveKind::kAllGather;
  if (name == "reduce_scatter") return models::CollectiveKind::kReduceScatter;
  if (name == "alltoall") return models::CollectiveKind::kAllToAll;
  return std::nullopt;
}

struct SizeColumn {
  double bytes;
  CsvColumn microseconds;
};

absl::StatusOr<std::vector<SizeColumn>> SizeColumns(const CsvTable& table) {
  std::vector<SizeColumn> columns;
  for (size_t i = 0; i < table.header().size(); ++i) {
    const std::string& name = table.header()[i];
    if (name == "collective" || name == "type" || name == "gpus") continue;
    double bytes = 0;
    if (!absl::SimpleAtod(name, &bytes) || !(bytes >= 1) ||
        !(bytes <= kMostBytes)) {
      return absl::InvalidArgumentError(
          absl::StrCat(table.label(), ":1: column \"", name,
                       "\" is unknown, expected a number of bytes"));
    }
    columns.push_back({bytes, CsvColumn(table, static_cast<int>(i))});
  }
  return columns;
}

}  // namespace

absl::StatusOr<std::vector<CollectiveSample>> ReadCollectiveTable(
    absl::string_view label, absl::string_view text, absl::string_view type,
    const CollectiveGroup& node) {
  ASSIGN_OR_RETURN(const CsvTable table, ReadCsv(label, text));
  ASSIGN_OR_RETURN(const CsvColumn names, table.Column("collective"));
  ASSIGN_OR_RETURN(const CsvColumn types, table.Column("type"));
  ASSIGN_OR_RETURN(const CsvColumn ranks, table.Column("gpus"));
  ASSIGN_OR_RETURN(const std::vector<SizeColumn> sizes, SizeColumns(table));
  std::vector<CollectiveSample> samples;
  for (int row = 0; row < table.num_rows(); ++row) {
    const auto kind = KindOf(names.Text(row));
    if (!kind.has_value()) {
      return names.Error(
          row, "expected all_reduce, all_gather, reduce_scatter or alltoall");
    }
    ASSIGN_OR_RETURN(const double num_ranks, ranks.Number(row, 2, kMostRanks));
    for (const SizeColumn& size : sizes) {
      ASSIGN_OR_RETURN(const double microseconds,
                       size.microseconds.Number(row, 1e-3, 1e12));
      if (types.Text(row) != type) continue;
      CollectiveSample sample{*kind, size.bytes, node, microseconds * 1e-6};
      sample.group.num_ranks = sample.group.ranks_per_node =
          static_cast<int>(num_ranks);
      samples.push_back(sample);
    }
  }
  return samples;
}

}  // namespace weir::calibrate
