// SPDX-License-Identifier: Apache-2.0
// Number of buffer sets to rotate over, and grouping of launches into graphs.
#ifndef WEIR_CALIBRATE_GPU_HOST_ROTATION_H_
#define WEIR_CALIBRATE_GPU_HOST_ROTATION_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace weir::calibrate {

// Returns the number of sets of `set_bytes` that exceed three times the L2
// cache in total, so that a set is no longer in the cache when its turn comes
// again. At least three (if `is_pass`: one, since a pass evicts its own data),
// at most 1024, and no more than fit into 0.9 of `free_bytes` with
// `allocated_bytes` each. Returns ResourceExhausted if not even one fits.
absl::StatusOr<int> NumSets(int64_t set_bytes, int64_t allocated_bytes,
                            int64_t l2_bytes, int64_t free_bytes, bool is_pass);

// Launches per graph, and the first set used by each graph; consecutive
// launches use consecutive sets. Graphs are replayed in turn.
struct GraphPlan {
  int launches_per_graph = 0;
  std::vector<int> first_sets;  // one per graph
  int num_graph_launches = 0;   // total over all graphs

  int num_launches() const { return launches_per_graph * num_graph_launches; }
};

// Plans about `num_launches` >= 1 launches: the nearest number of whole graphs,
// with at most about `kMaxGraphOps` operations per graph. All sets are used
// before one is used again, within a graph and, as far as num_launches permits,
// across graphs.
inline constexpr int kMaxGraphOps = 2000;
GraphPlan PlanGraphs(int num_launches, int num_sets, int ops_per_launch);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_HOST_ROTATION_H_
