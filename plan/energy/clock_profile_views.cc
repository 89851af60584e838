// SPDX-License-Identifier: Apache-2.0
#include "plan/energy/clock_profile_views.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/json_text.h"
#include "base/text_table.h"
#include "base/units.h"

namespace weir::plan {
std::string ClockProfileTable(const ClockProfile& profile) {
  TextTable table;
  table.header = {"stage",  "pass",       "clocks", "MHz",   "time",
                  "energy", "lowest MHz", "time",   "energy"};
  table.left = {true, true};
  for (const auto& [key, points] : profile.passes) {
    const ClockPoint& low = points.front();
    const ClockPoint& high = points.back();
    const auto joules = [](const ClockPoint& point) {
      return absl::StrFormat("%.4g J", point.joules);
    };
    table.rows.push_back(
        {absl::StrCat(key.first), InstructionName(key.second),
         absl::StrCat(points.size()), absl::StrCat(high.megahertz),
         FormatSeconds(high.seconds), joules(high), absl::StrCat(low.megahertz),
         FormatSeconds(low.seconds), joules(low)});
  }
  return absl::StrCat("profile of ", profile.num_stages,
                      " stages by clock (Perseus)\n\n", PrintTable(table));
}

std::string ClockProfileJson(const ClockProfile& profile) {
  auto passes = nlohmann::ordered_json::array();
  for (const auto& [key, points] : profile.passes) {
    auto clocks = nlohmann::ordered_json::array();
    for (const ClockPoint& point : points) {
      clocks.push_back({{"megahertz", point.megahertz},
                        {"seconds", point.seconds},
                        {"joules", point.joules}});
    }
    passes.push_back({{"stage", key.first},
                      {"pass", InstructionName(key.second)},
                      {"clocks", std::move(clocks)}});
  }
  return DumpJson(nlohmann::ordered_json{{"num_stages", profile.num_stages},
                                         {"passes", std::move(passes)}});
}

}  // namespace weir::plan
