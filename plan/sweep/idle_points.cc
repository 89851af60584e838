// SPDX-License-Identifier: Apache-2.0
#include "plan/sweep/idle_points.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "scenarios/cluster/cluster.h"
#include "scenarios/sizes.h"

namespace weir::plan {
namespace {

constexpr uint32_t kMostPoints = 1000;

std::string IdleWarningOf(Scenario scenario) {
  // Errors are results of the point.
  if (scenario.has_costs() || !scenarios::FillSizes("", &scenario).ok()) {
    return "";
  }
  const auto cluster = scenarios::LoadCluster(
      scenario.cluster(), static_cast<int>(scenario.num_nodes()),
      scenario.cluster_changes());
  return cluster.ok() ? scenarios::IdleWarning(scenario, *cluster) : "";
}

}  // namespace

std::string IdlePointsWarning(const ResolvedSweep& sweep) {
  const uint32_t num_points = std::min(sweep.num_points, kMostPoints);
  uint32_t num_idle = 0;
  std::string first;
  for (uint32_t point = 0; point < num_points; ++point) {
    const std::string warning = IdleWarningOf(ScenarioOfPoint(sweep, point));
    if (warning.empty()) continue;
    if (num_idle++ == 0) first = absl::StrCat("point ", point, ": ", warning);
  }
  if (num_idle == 0) return "";
  return absl::StrCat(num_idle, " of ", num_points, " points ",
                      num_idle == 1 ? "leaves" : "leave",
                      " GPUs idle: ", first);
}

}  // namespace weir::plan
