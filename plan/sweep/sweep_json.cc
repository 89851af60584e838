// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "plan/sweep/fields.h"
#include "plan/sweep/sweep_views.h"

namespace weir::plan {
namespace {

using Json = nlohmann::ordered_json;

Json PointJson(const SweepTable& table, const std::vector<SweepCell>& row) {
  Json point = Json::object();
  for (size_t i = 0; i < row.size(); ++i) {
    std::visit(
        [&](const auto& cell) {
          using Cell = std::decay_t<decltype(cell)>;
          if constexpr (!std::is_same_v<Cell, std::monostate>) {
            point[table.names[i]] = cell;
          }
        },
        row[i]);
  }
  return point;
}

}  // namespace

std::string SweepJson(const CollectedSweep& collected) {
  const SweepCounts counts = CountsOf(collected);
  const SweepTable table = TableOf(collected.sweep);
  Json json = {{"num_points", counts.num_points},
               {"num_done", counts.num_done},
               {"num_refused", counts.num_refused},
               {"num_failed", counts.num_failed},
               {"num_missing", counts.num_points - counts.num_ended()}};
  if (counts.has_best) {
    json["best"] = PointJson(table, RowOf(collected.sweep, counts.best));
  }
  json["fields"] = Json::array();
  for (const std::string& field : collected.sweep.fields) {
    json["fields"].push_back(ShortField(field));
  }
  json["points"] = Json::array();
  for (const auto& [point, outcome] : collected.outcomes) {
    json["points"].push_back(PointJson(table, RowOf(collected.sweep, outcome)));
  }
  return DumpJson(json);
}

}  // namespace weir::plan
