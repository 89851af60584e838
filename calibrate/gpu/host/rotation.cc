// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/host/rotation.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"

namespace weir::calibrate {
namespace {

constexpr int64_t kMaxSets = 1024;
constexpr int kMaxGraphs = 16;

}  // namespace

absl::StatusOr<int> NumSets(int64_t set_bytes, int64_t allocated_bytes,
                            int64_t l2_bytes, int64_t free_bytes,
                            bool is_pass) {
  const int64_t wanted =
      3 * l2_bytes / std::max<int64_t>(set_bytes, 1) + 1;  // sum > 3 L2
  const int64_t num_sets =
      std::clamp(wanted, int64_t{is_pass ? 1 : 3}, kMaxSets);
  const int64_t fit = static_cast<int64_t>(0.9 * free_bytes) /
                      std::max<int64_t>(allocated_bytes, 1);
  if (fit < 1) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "its buffers take %.2f GiB, expected at most 90 %% of the %.2f GiB of "
        "GPU memory that are free",
        allocated_bytes / 1073741824.0, free_bytes / 1073741824.0));
  }
  return static_cast<int>(std::min(num_sets, fit));
}

GraphPlan PlanGraphs(int num_launches, int num_sets, int ops_per_launch) {
  GraphPlan plan;
  const int most = std::max(1, kMaxGraphOps / std::max(1, ops_per_launch));
  plan.launches_per_graph = std::min(num_launches, most);
  if (plan.launches_per_graph > num_sets) {
    // Whole rounds, so that each graph begins with the first set.
    plan.launches_per_graph -= plan.launches_per_graph % num_sets;
  }
  const int per_graph = plan.launches_per_graph;
  const int num_graphs =
      std::min((num_sets + per_graph - 1) / per_graph, kMaxGraphs);
  for (int graph = 0; graph < num_graphs; ++graph) {
    plan.first_sets.push_back(graph * per_graph % num_sets);
  }
  // Rounded, since a graph more than needed may double the launches.
  plan.num_graph_launches =
      std::max(1, (num_launches + per_graph / 2) / per_graph);
  return plan;
}

}  // namespace weir::calibrate
