// SPDX-License-Identifier: Apache-2.0
#include "tools/accuracy/published_sets.h"

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/csv.h"
#include "base/files.h"
#include "base/status_macros.h"

namespace weir {
namespace {

constexpr std::pair<const char*, std::string PublishedSet::*> kFields[] = {
    {"set", &PublishedSet::name},
    {"title", &PublishedSet::title},
    {"quantity", &PublishedSet::quantity},
    {"target", &PublishedSet::target},
    {"worst_target", &PublishedSet::worst_target},
    {"measured", &PublishedSet::measured},
    {"scenario", &PublishedSet::scenario},
    {"columns", &PublishedSet::columns},
    {"fitted", &PublishedSet::fitted},
    {"source", &PublishedSet::source},
    {"device", &PublishedSet::device},
    {"program", &PublishedSet::program},
    {"part_of", &PublishedSet::part_of},
    {"not_fitted", &PublishedSet::not_fitted},
};

}  // namespace

absl::StatusOr<std::vector<PublishedSet>> LoadPublishedSets(
    const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  ASSIGN_OR_RETURN(const CsvTable table, ReadCsv(path, text));
  std::vector<PublishedSet> sets(table.num_rows());
  for (const auto& [name, field] : kFields) {
    ASSIGN_OR_RETURN(const CsvColumn column, table.Column(name));
    for (int i = 0; i < table.num_rows(); ++i) {
      sets[i].*field = column.Text(i);
    }
  }
  return sets;
}

absl::StatusOr<std::vector<PublishedSet>> LoadPublishedSets(
    const std::string& path, const std::string& folder) {
  ASSIGN_OR_RETURN(std::vector<PublishedSet> sets, LoadPublishedSets(path));
  std::vector<PublishedSet> present;
  for (PublishedSet& set : sets) {
    const std::string rows = absl::StrCat(folder, "/", set.name, ".csv");
    if (std::filesystem::exists(rows)) present.push_back(std::move(set));
  }
  return present;
}

}  // namespace weir
